"""One call replayed on a GPU, several times over: its result, what it wrote beside it, and whether it repeats.

Between the repeats the guards' bytes and the buffers' places change. A right kernel gives the same bits each time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from grader.comparison import compare
from grader.exercise import Exercise
from grader.gpu.answers import Overrun, Replayed, Summary
from grader.gpu.buffers import POISON, Buffers
from grader.gpu.launcher import Functions
from grader.gpu.plan import Plan
from grader.gpu.replay import Replay
from grader.inputs import Data, is_poison, poison_
from grader.protocol import TensorSpec

# (bytes past an aligned address, what the guards hold): NaN, a number, NaN again with the neighbours elsewhere.
REPEATS = ((0, POISON), (16, 0x5A), (64, POISON))

Fill = Callable[[Buffers], None]


def replayed(
    plan: Plan, functions: Functions, config: int, fill: Fill, arguments: list[TensorSpec], returns: str
) -> tuple[Buffers, Replayed]:
    """The buffers of the first run, and what all of them did. `fill` gives the arguments the same bytes each time."""
    runs = [_run(plan, functions, config, fill, arguments, returns, *place) for place in REPEATS]
    first, found = runs[0]
    for buffers, other in runs[1:]:
        found.overruns = found.overruns or other.overruns
        found.changed = found.changed or other.changed
        differing = _differing(first.view(plan.result), buffers.view(plan.result))
        found.differing = max(found.differing, differing)
    return first, found


def _run(
    plan: Plan, functions: Functions, config: int, fill: Fill, arguments: list[TensorSpec], returns: str,
    shift: int, pattern: int,
) -> tuple[Buffers, Replayed]:  # fmt: skip
    buffers = Buffers(plan, shift, pattern)
    fill(buffers)
    given = [buffers.data(number).clone() for number in range(len(arguments))]
    Replay(plan, functions, buffers, config).enqueue()
    torch.cuda.synchronize()
    found = Replayed(buffers.overruns())
    for number, spec in enumerate(arguments):
        now = buffers.data(number)
        if spec.name == returns:
            found.overruns += _changed_between(now, given[number], spec)
        elif not torch.equal(now, given[number]):
            found.changed.append(spec.name)
    return buffers, found


def _changed_between(now: torch.Tensor, given: torch.Tensor, spec: TensorSpec) -> list[Overrun]:
    """An argument that is filled keeps the bytes in the holes of its view."""
    holes = torch.ones(spec.size, dtype=torch.bool, device=now.device)
    size = getattr(torch, spec.dtype).itemsize
    strides = [stride * size for stride in spec.strides]
    holes.as_strided((*spec.shape, size), (*strides, 1), spec.offset * size).fill_(False)
    count = int(((now != given) & holes).sum())
    return [Overrun(spec.name, "between", 0, count)] if count else []


def _differing(one: torch.Tensor, other: torch.Tensor) -> int:
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[one.element_size()]
    return int((one.contiguous().view(bits) != other.contiguous().view(bits)).sum())


# ---- arguments drawn here, compared here: for sizes that no pipe should carry ----------------------------------------


def drawn(data: list[Data], arguments: list[TensorSpec], seeds: list[int], device: str = "cuda") -> Fill:
    def fill(buffers: Buffers) -> None:
        for number, (recipe, spec, seed) in enumerate(zip(data, arguments, seeds)):
            poison_(buffers.data(number).view(getattr(torch, spec.dtype)))
            recipe.fill(buffers.argument(number, spec), torch.Generator(device).manual_seed(seed))

    return fill


def compared(
    exercise: Exercise,
    bound: str,
    plan: Plan,
    buffers: Buffers,
    data: list[Data],
    arguments: list[TensorSpec],
    seeds: list[int],
) -> Summary:
    """The result against the reference in float64, on inputs that are drawn anew: no kernel could change those.

    What was expected is overwritten before this returns.
    """
    device = buffers.memory[0].device
    exact = [
        recipe.tensor(getattr(torch, spec.dtype), torch.Generator(device).manual_seed(seed)).double()
        for recipe, spec, seed in zip(data, arguments, seeds)
    ]
    out, ref = buffers.view(plan.result), exercise.reference(*exact)
    if out.shape != ref.shape:
        _wipe(ref, *exact)
        return Summary(list(ref.shape), out.numel())
    comparison = compare(out, ref, bound, exact)
    summary = Summary(list(ref.shape), out.numel(), comparison.wrong_count, _finite(comparison.largest_error))
    if summary.wrong:
        first = comparison.first_wrong
        summary.first = list(first)
        summary.expected, summary.found = (f"{float(t[first]):.6g}" for t in (comparison.expected, out))
        summary.unwritten = int((_is_unwritten(out) & comparison.wrong).sum())
    _wipe(comparison.expected, ref, *exact)
    return summary


def _wipe(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        tensor.fill_(float("nan"))


def _is_unwritten(out: torch.Tensor) -> torch.Tensor:
    """Elements that hold the poison of fresh memory, or of an argument to be filled."""
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[out.element_size()]
    return (out.contiguous().view(bits) == -1) | is_poison(out)


def _finite(number: float) -> float:
    """JSON has no infinity."""
    return min(number, 1e300)
