"""The calls that an exercise's tests time, and their speed; a measurement counts more than what a text predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from grader.course.exercise import Exercise
from grader.course.resized import fitting
from grader.course.trial import Trial, trial_of
from grader.explain.causes import Cause
from grader.explain.verdict import INCONCLUSIVE, NOT_RUN, PASS, SKIPPED, Verdict
from grader.gpu.plan import PackedPlan
from grader.judging.gate_here import gate_here
from grader.judging.run import Run
from grader.judging.speed_samples import not_timed, speed_verdict
from grader.judging.uses import ThroughputUse
from grader.wire.reply import DTYPES

TELLS_NOTHING = "as measured on this GPU, a kernel that nobody wants is as fast as the solution"
# Costs that a text predicts, and that cost time alone: a kernel with one of them may be fast all the same.
PREDICTED = (Cause.SCALAR_ACCESS, Cause.SPILLS, Cause.NOT_PIPELINED, Cause.SCATTERED)


@dataclass
class MeasuredSpeed:
    """Judges speed. launch_plan: returns the launch plan of a trial, or the verdict that says why there is none."""

    exercise: Exercise
    run: Run
    launch_plan: Callable[[Trial], PackedPlan | Verdict]
    timed: list[ThroughputUse] = field(default_factory=list)  # what the exercise's tests time

    def trial(self, use: ThroughputUse) -> Trial:
        """Returns the trial of a call to be timed, in the exercise's first dtype.

        The rows of its data are halved until the call can be timed in the GPU's memory.
        """
        dtype = self.exercise.dtypes[0]
        data = fitting(self.exercise, use.data, DTYPES[dtype], self.run.model.memory_bytes)
        return trial_of(self.exercise, use.test, data, dtype)

    def not_timed(self, use: ThroughputUse) -> Verdict | None:
        """Returns the skip of a test whose speed says nothing on this GPU; None where it is to be timed."""
        why = not_timed(self.run.model, use.anchor, use.since)
        return Verdict(SKIPPED, NOT_RUN, note=why) if why else None

    def verdict(self, use: ThroughputUse, trial: Trial, medals: bool = False) -> Verdict:
        """Returns the verdict on a call's speed, as a share of the anchor's. Raises GpuBusy.

        medals: whether a kernel that passes gets a medal.
        """
        gate = gate_here(self.run.folder, use.test, use.at_least, self.run.model.name)
        if gate is None:
            return Verdict(SKIPPED, NOT_RUN, note=TELLS_NOTHING)
        packed = self.launch_plan(trial)
        if isinstance(packed, Verdict):
            return packed
        return speed_verdict(self.run, trial, packed, use.anchor, gate, medals)

    def instead_of(self, predicted: Verdict, trial: Trial | None = None) -> Verdict:
        """Returns a pass with the prediction as advice if the GPU is fast, or the verdict as predicted.

        If noise hides the speed, returns that inconclusive verdict: nothing fails for noise.

        trial: the call that the prediction is about, if it is large enough to be timed; without it all calls that the
        tests time are measured. Raises GpuBusy.
        """
        if predicted.id not in PREDICTED or self.run.replays is None or not self.timed:
            return predicted
        for use in self.timed if trial is None else self.timed[:1]:
            speed = self.not_timed(use) or self.verdict(use, trial or self.trial(use))
            if speed.id == INCONCLUSIVE:
                return speed
            if speed.outcome != PASS:
                return predicted
        return Verdict(PASS, note=f"fast as measured; but {predicted.lines[0]}", figures=predicted.figures)
