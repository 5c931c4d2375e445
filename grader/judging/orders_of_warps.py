"""Kernels whose text is right, and whose result on a GPU depends on which of a program's warps comes first.

The interpreter tells where one program loads and stores the same bytes. For the accesses of different warps among
these, the compiler's layouts tell which warps hold which elements, and whether they wait for each other. Where the
compiler itself makes wrong code of a right kernel, no interpreter sees it, and a GPU only sometimes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.course.trial import Trial
from grader.explain.compiled_code import overwritten
from grader.explain.verdict import Verdict
from grader.explain.waiting_warps import in_any_order
from grader.gpu.laid_out import read_laid_out
from grader.gpu.overwritten_tiles import RUNS_ON, overwritten_tile
from grader.gpu.warp_order import Conflict, WarpOrderReader, may_matter
from grader.judging.run import Run
from grader.numerics.arguments import Argument, without_values
from grader.wire.messages import Meeting
from grader.wire.recorded_call import RecordedCall, RecordedKernel
from grader.wire.recorded_parts import PlannedLaunch, steps_with
from grader.wire.reply import Reply


@dataclass
class OrdersOfWarps:
    """Judges each pair of accesses of each kernel once."""

    run: Run
    _known: dict[str, Conflict | None] = field(default_factory=dict)

    def are_in_question(self, trial: Trial, inputs: list[Argument], reply: Reply) -> bool:
        """Returns whether a launch of a call reads memory that it writes, with several warps."""
        call = self.run.recorded_call(trial, inputs).call
        return any(
            launch.updated and _warps(kernel) > 1 for launch, kernel in zip(reply.launches, _launched(call, trial))
        )

    def verdict(self, trial: Trial, inputs: list[Argument], reply: Reply) -> Verdict | None:
        """Returns what is wrong with a call whose values are right; None if nothing is.

        `reply`: to its second run, with its meetings: the loads and stores of the same bytes.
        """
        launched = list(_launched(self.run.recorded_call(trial, inputs, again=True).call, trial))
        for meeting in reply.meetings:
            kernel = launched[meeting.launch] if 0 <= meeting.launch < len(launched) else None
            if kernel is None or not may_matter(meeting, _warps(kernel)):
                continue
            seen = meeting.loads_first, meeting.in_one_turn, meeting.load, meeting.store
            key = repr((kernel.source, kernel.recipe.options, *seen))
            if key not in self._known:
                self._known[key] = self._conflict(kernel, meeting)
            if conflict := self._known[key]:
                return in_any_order(self.run.submission, kernel.name, meeting, conflict)
        return None

    def _conflict(self, kernel: RecordedKernel, meeting: Meeting) -> Conflict | None:
        machine_code, filename = self.run.machine_code, self.run.filename
        laid_out = read_laid_out(machine_code.laid_out(kernel), filename)
        if laid_out is None:
            return None
        order = WarpOrderReader(laid_out, filename)
        conflict = order.conflict(meeting)
        return conflict if conflict and order.lacks_barrier(meeting, machine_code.ptx(kernel)) else None


def _launched(call: RecordedCall, trial: Trial) -> Iterator[RecordedKernel]:
    """Yields the kernel of each launch, in order."""
    steps = steps_with(call.steps, trial.config)
    return (call.kernels[step.kernel] for step in steps if isinstance(step, PlannedLaunch))


def _warps(kernel: RecordedKernel) -> int:
    return int(kernel.recipe.options.get("num_warps", 1))


def compiler_race(run: Run, trial: Trial, inputs: list[Argument] | None = None) -> Verdict | None:
    """Returns what is wrong with the machine code of a call, in any of its configurations; None if nothing is.

    inputs: as for `Run.launch_plan`. Raises ChildEnded, MachineFault.
    """
    call = run.recorded_call(trial, inputs or without_values(trial.data, trial.dtype)).call
    for kernel in call.kernels:
        if kernel.source and RUNS_ON.search(run.machine_code.ptx(kernel)):
            laid_out = read_laid_out(run.machine_code.laid_out(kernel), run.filename)
            tile = overwritten_tile(laid_out) if laid_out else None
            if tile is not None:
                return overwritten(run.submission, kernel.name, tile)
    return None
