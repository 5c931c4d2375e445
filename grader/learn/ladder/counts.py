"""Counts of a kernel that take no GPU: bytes that its programs move, and figures of its machine code."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from grader.gpu.compiled_facts import Facts, facts_of
from grader.gpu.plan import PackedPlan, least_bytes
from grader.judging.in_samples import table_of
from grader.learn.disassembly import NotDisassembled, count_of_instructions
from grader.learn.usable_submission import launch_plan
from grader.numerics.arguments import tensors_of, without_values
from grader.numerics.data_sets import Data
from grader.processes.faults import ChildEnded
from grader.wire.messages import VIEW_BYTES

if TYPE_CHECKING:
    from torch import Tensor

    from grader.course.trial import Trial
    from grader.judging.run import Run
    from grader.numerics.arguments import DataOrNumber

PROGRAMS = 8  # of a launch, whose traffic is counted; the others are assumed to move as much
TEXTS = ("ptx", "ttgir")


@dataclass
class Counts:
    """Counts of all launches of a call together; registers, spilled and shared bytes are the most of any kernel.

    moved: bytes in multiples of the least possible. instructions: of the machine code of all kernels. None: unknown.
    """

    moved: float | None
    launches: int
    programs: int
    instructions: int | None
    registers: int
    spilled: int  # bytes per thread
    shared: int  # bytes per program
    opcodes: str
    widths: list[int] = field(default_factory=list)  # bytes that a thread loads or stores at once


def counts_of(run: Run, trial: Trial, sizes: list[list[int]] | None = None) -> Counts:
    """Returns the counts of a call. `sizes`: shapes of the tensors in a smaller call, to count the traffic of instead.

    Raises click.ClickException if the call cannot be compiled.
    """
    packed = launch_plan(run, trial, TEXTS)
    plan, launches = packed.plan, list(packed.plan.launches())
    kernels = [plan.kernels[number] for number in dict.fromkeys(launch.kernel for launch in launches)]
    facts = [facts_of(kernel, run.filename) for kernel in kernels]
    return Counts(
        moved=_moved(run, trial, packed, sizes),
        launches=len(launches),
        programs=sum(math.prod(launch.grid) for launch in launches),
        instructions=_instructions([kernel.code for kernel in kernels]),
        registers=max((fact.registers for fact in facts), default=0),
        spilled=max((fact.spilled_bytes for fact in facts), default=0),
        shared=max((fact.shared * fact.blocks for fact in facts), default=0),
        opcodes=_opcodes(facts),
        widths=sorted({access.bytes for fact in facts for access in fact.accesses}),
    )


def _moved(run: Run, trial: Trial, packed: PackedPlan, sizes: list[list[int]] | None) -> float | None:
    """Returns the moved bytes in multiples of the least possible; None if they cannot be counted.

    A few programs are counted, each by itself, in whole sectors of 32 bytes. A smaller call is assumed to move each
    argument as often as the large call does, and to have as much scratch for its arguments and results.
    """
    data = with_sizes(trial.data, sizes) if sizes else trial.data
    counted = replace(trial, data=data)
    tables: dict[str, Tensor] = {}
    for number, name in enumerate(trial.arguments):
        if (table := table_of(run, counted, number)) is None:
            return None
        tables[name] = table
    inputs = without_values(data, trial.dtype)
    own = [tables[name] for name, _ in tensors_of(trial.arguments, inputs)]
    try:
        reply = run.sample(counted, inputs, own, PROGRAMS, count_traffic=True)
    except ChildEnded:
        return None
    if reply.error is not None or reply.refusals:
        return None
    whole, sizes_here = _sizes(packed), {one.argument: one.size for one in reply.traffic}
    larger = sum(whole.values()) / max(sum(size for name, size in sizes_here.items() if name in whole), 1)
    moved = (
        (one.read + one.written + max(0, one.moved - one.used))
        * (whole[one.argument] / max(one.size, 1) if one.argument in whole else larger)
        for one in reply.traffic
    )
    return sum(moved) / max(least_bytes(packed.plan, packed.arguments, trial.exercise), 1)


def with_sizes(data: tuple[DataOrNumber, ...], sizes: list[list[int]]) -> tuple[DataOrNumber, ...]:
    """Returns the data sets of a call with these shapes of its tensors, in their order."""
    left = iter(sizes)
    return tuple(replace(stated, shape=tuple(next(left))) if isinstance(stated, Data) else stated for stated in data)


def _sizes(packed: PackedPlan) -> dict[str, int]:
    """Returns the bytes of the tensor arguments and of the results, by name."""
    views = {spec.name: spec for spec in packed.arguments} | packed.plan.results
    return {name: math.prod(view.shape) * VIEW_BYTES[view.dtype] for name, view in views.items()}


def _instructions(codes: list[bytes]) -> int | None:
    try:
        return sum(map(count_of_instructions, codes))
    except NotDisassembled:
        return None


def _opcodes(facts: list[Facts]) -> str:
    opcodes = [fact.tensor_cores for fact in facts]
    opcodes += ["cp.async" for fact in facts if fact.async_copies]
    opcodes += ["TMA" for fact in facts if fact.tma_copies]
    return " ".join(dict.fromkeys(filter(None, opcodes)))
