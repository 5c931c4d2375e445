"""Blames a wrong call on a number written instead of a block size, on a slip in the text, or on an earlier call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from grader.course.trial import Trial
from grader.explain.blame import blame_a_number
from grader.explain.causes import Cause
from grader.explain.earlier_calls import add_to, depends_on_earlier_calls
from grader.explain.slips import FoundSlip, blame_a_slip, slips
from grader.explain.verdict import Verdict
from grader.judging.run import Run
from grader.numerics.arguments import Argument
from grader.processes.faults import ChildEnded
from grader.processes.submission_process import MOST_COMPUTING
from grader.submission.text import literals_in_kernels

ENOUGH_RIGHT_CALLS = 4  # before a failure with other block sizes is blamed on them
MOST_ALONE = 3  # wrong calls that are made once more, as the first of a process
MOST_SECONDS = MOST_COMPUTING / 4  # of a core for all recordings so far: the process for one call may take as many


@dataclass
class LikelyCauses:
    run: Run
    compared_alone: int = 0  # wrong calls that were made once more, as the first of a process

    def wrong(self, trial: Trial, inputs: list[Argument], verdict: Verdict, blame: bool) -> None:
        """Adds to the verdict. blame: whether it may be put down to block sizes that stand in the code as numbers."""
        if trial.constants and self.run.history.wrong_with_own_blocks and verdict.id == Cause.DOES_NOT_COMPILE:
            verdict.kind = "guess"  # what is wrong where the kernel runs, with the file's own sizes, says more
        if blame:
            self._blame_a_number(trial, verdict)
        blame_a_slip(verdict, self.run.submission, lambda: self._first_slip)
        self._blame_an_earlier_call(trial, inputs, verdict)

    @cached_property
    def _first_slip(self) -> FoundSlip | None:
        """The first slip of the text: each wrong call of it has the same."""
        return next(slips(self.run.submission.tree), None)

    def _blame_an_earlier_call(self, trial: Trial, inputs: list[Argument], verdict: Verdict) -> None:
        """Blames an earlier call if this call does something else as the first of its process."""
        if self.compared_alone == MOST_ALONE or self.run.process.seconds_of_a_core > MOST_SECONDS:
            return
        self.compared_alone += 1
        try:
            here = [self.run.recorded_call(trial, inputs, again).call for again in (False, True)]
            alone = self.run.recorded_alone(trial, inputs).call
        except ChildEnded:
            return
        blamed = (depends_on_earlier_calls(call, alone, trial.exercise) for call in here)
        if difference := next(filter(None, blamed), None):
            add_to(verdict, difference, self.run.submission, trial.exercise)

    def _blame_a_number(self, trial: Trial, verdict: Verdict) -> None:
        """Blames numbers in the code that stand for block sizes, if calls were right until the block sizes changed."""
        if verdict.kind in ("file", "ended", "error") or verdict.id == Cause.WARP_ORDER:
            return
        constants = trial.in_effect(self.run.process.constants)
        right = self.run.history.right_with_own_blocks
        enough = right.total() >= ENOUGH_RIGHT_CALLS and right[trial.dtype]
        if constants and enough and not self.run.history.wrong_with_own_blocks:
            own = self.run.process.constants
            numbers = {own[name] for name, value in constants.items() if own.get(name, value) != value}
            blame_a_number(verdict, constants, literals_in_kernels(self.run.submission.tree, numbers))
