"""The speed of kernels over size, a sample for each: the same plans, clock and checks as for the judge's verdict.

A sweep does not show that a kernel is right at every size; but each output that is timed is verified, and a wrong
output ends the sweep.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import click

from grader.course.exercise import Exercise
from grader.course.resized import first_tensor, fitting, resized, sizes_below
from grader.course.trial import Trial, short_dtype, trial_of
from grader.explain import gpu_findings
from grader.gpu.answers import ANCHOR, KERNEL, Measurement
from grader.gpu.answers import TORCH as TORCH_CHAIN
from grader.gpu.lock import GpuBusy
from grader.gpu.plan import PackedPlan
from grader.gpu.pool.replay_process import ReplayEnded
from grader.gpu.pool.replays import Replays
from grader.judging.on_gpu import asked_of, other_result
from grader.judging.run import Run
from grader.judging.speed_samples import flops_of
from grader.judging.uses import ThroughputUse
from grader.learn.usable_submission import judge_it, launch_plan
from grader.numerics.arguments import DataOrNumber
from grader.show.curves import CEILINGS, TORCH, UNITS, Curves, number_text, shape_text
from grader.wire.reply import DTYPES

AT_ONCE = 4  # processes that warm up together; a measurement waits until all of them are ready


@dataclass
class Sweep:
    """The submissions to time at each size of a call, by name; with a copy as the ceiling, torch is timed too."""

    runs: dict[str, Run]
    exercise: Exercise
    asked: ThroughputUse
    replays: Replays

    @property
    def anchor(self) -> str:
        return self.asked.anchor

    @property
    def data(self) -> tuple[DataOrNumber, ...]:
        """The data sets of the largest call, which fits into the memory of the GPU."""
        memory = self.replays.device.model.memory_bytes
        return fitting(self.exercise, self.asked.data, DTYPES[self.exercise.dtypes[0]], memory)

    @property
    def sizes(self) -> list[int]:
        return sizes_below(self.exercise, self.data, DTYPES[self.exercise.dtypes[0]])

    @property
    def samples(self) -> int:
        return len(self.sizes) * len(self.runs)

    def measure(self, advance: Callable[[], None], note: Callable[[str], None]) -> Curves:
        """Returns the curves. Calls `advance` after each sample, and `note` with the reason if a sample is missing.

        Raises click.ClickException.
        """
        curves, first = self._empty(), next(iter(self.runs))
        for place, size in enumerate(curves.sizes):
            for number, (name, run) in enumerate(self.runs.items()):
                done = place * len(self.runs) + number
                if done % AT_ONCE == 0:
                    self.replays.start(min(AT_ONCE, self.samples - done))
                try:
                    rates = self._rates(run, size, with_torch=name == first and self.anchor == "copy")
                except _NotMeasured as why:
                    note(f"n = {number_text(size)}, {name}: not measured, {why}.")
                else:
                    curves.rates[name][place] = rates[KERNEL]
                    curves.rates[curves.ceiling][place] = curves.rates[curves.ceiling][place] or rates[ANCHOR]
                    if name == first and TORCH in curves.rates:
                        curves.rates[TORCH][place] = rates[TORCH_CHAIN]
                advance()
        return curves

    def _empty(self) -> Curves:
        model, (unit, _) = self.replays.device.model, UNITS[self.anchor]
        shape = f"{shape_text(first_tensor(self.data))}, {short_dtype(DTYPES[self.exercise.dtypes[0]])}"
        sizes = self.sizes
        names = [*self.runs, *([TORCH] if self.anchor == "copy" else []), CEILINGS[self.anchor]]
        rates: dict[str, list[float | None]] = {name: [None] * len(sizes) for name in names}
        folder = next(iter(self.runs.values())).folder
        return Curves(folder.id, model.name, model.l2_bytes, shape, unit, CEILINGS[self.anchor], sizes, rates)

    def _rates(self, run: Run, size: int, with_torch: bool) -> dict[str, float | None]:
        """Returns rates by chain, in the unit of the curves. Raises _NotMeasured, click.ClickException."""
        trial = trial_of(self.exercise, self.asked.test, resized(self.data, size), self.exercise.dtypes[0])
        packed = launch_plan(run, trial)
        if other_result(trial, packed) is not None:
            self._refuse(run, f"{self.exercise.entry} returns another result than it should")
        sample = self._sample(run, trial, packed, with_torch)
        if sample.wrong:
            self._refuse(run, f"At n = {number_text(size)} {sample.wrong}")
        if math.isnan(sample.share):
            raise _NotMeasured(sample.why_invalid or "too few rounds were sound")
        work = sample.bytes if self.anchor == "copy" else flops_of(self.exercise, packed)
        seconds = {chain: sample.seconds(chain) for chain in (KERNEL, ANCHOR, TORCH_CHAIN)}
        unit = UNITS[self.anchor][1]
        return {chain: None if math.isnan(time) else work / unit / time for chain, time in seconds.items()}

    def _sample(self, run: Run, trial: Trial, packed: PackedPlan, with_torch: bool) -> Measurement:
        try:
            reply = self.replays.measure(
                packed, 0, run.folder, **asked_of(trial), anchor=self.anchor,
                seed=secrets.randbits(62), choose=True, with_torch=with_torch,
            )  # fmt: skip
        except ReplayEnded as ended:
            if ended.how == "no-room":
                raise _NotMeasured("the GPU has too little free memory") from None
            if ended.how == "died":
                raise click.ClickException(
                    f"The process that owns the GPU ended: {ended.detail}. Next: course doctor"
                ) from None
            self._refuse(run, gpu_findings.fault(ended).lines[0].rstrip("."))
        except GpuBusy as busy:
            raise click.ClickException(f"{busy}. Next: try again when it is done.") from None
        return Measurement.from_json(reply)

    def _refuse(self, run: Run, sentence: str) -> None:
        raise click.ClickException(
            f"{run.submission.path.name}: {sentence}. Only a right kernel is plotted. Next: {judge_it(run)}"
        )


class _NotMeasured(Exception):
    """A sample is missing; the message is the reason."""
