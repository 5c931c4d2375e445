"""The verdict on a function that measures: it is asked about kernels on simulated GPUs, whose true times are known.

A wrong answer is explained by asking again: on the same GPU without what may make a measurement wrong, part by part.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass

from grader.course.exercise import Exercise
from grader.explain import failures, wrong_times
from grader.explain.verdict import PASS, Verdict
from grader.explain.wrong_times import time_text
from grader.gpu.lock import GpuBusy
from grader.gpu.pool.replay_process import ReplayEnded
from grader.gpu.simulated_gpu import EndlessMeasurement, GpuPart, SimulatedGpu, Traits, drawn_traits
from grader.judging.run import Run
from grader.processes.faults import ChildEnded

WITHIN = 0.02  # share of the true time by which a right answer may be off
MOST_EXPLAINED = 1  # wrong answers of a run: one is told


@dataclass(frozen=True)
class SimulatedMeasurement:
    """A kernel of so many seconds on a GPU with these traits. `seed`: of what happens there."""

    seconds: float
    traits: Traits
    seed: str

    def gpu(self, without: Collection[GpuPart] = ()) -> SimulatedGpu:
        return SimulatedGpu(self.traits, self.seconds, self.seed, without)

    @property
    def label(self) -> str:
        return f"a kernel of {time_text(self.seconds)}, a launch of about {time_text(self.traits.launch)}"


def drawn_measurement(run: Run, test: str, number: int, *seconds: float) -> SimulatedMeasurement:
    """Returns the measurement of this test with this number, on a GPU that the run's seed draws. seconds: of the
    kernel, or the least and the most that it may take."""
    seed = f"{run.seed} {run.folder.id} {test} {number}"
    numbers = random.Random(f"{seed} traits")
    drawn = math.exp(numbers.uniform(math.log(min(seconds)), math.log(max(seconds))))
    return SimulatedMeasurement(float(f"{drawn:.4g}"), drawn_traits(numbers), seed)


def measured_verdict(run: Run, exercise: Exercise, measurement: SimulatedMeasurement) -> Verdict:
    """Returns the verdict on what the entry answers to a measurement. Raises ChildEnded, MachineFault."""
    entry, gpu = exercise.entry, measurement.gpu()
    try:
        answer = run.measured(entry, gpu)
    except EndlessMeasurement as limit:
        return wrong_times.endless(entry, gpu.log, limit)
    if run.process.load_failure is not None:
        return failures.file_failure(run.process.load_failure, run.submission, exercise)
    if answer.error is not None:
        return failures.call_failure(answer.error, run.submission, exercise)
    if answer.seconds is None or answer.seconds <= 0:
        return wrong_times.no_time(entry, answer.type, answer.seconds)
    unmeasured = wrong_times.not_measured(entry, answer.seconds, gpu.log)
    if unmeasured is not None:
        return unmeasured
    error = abs(answer.seconds / measurement.seconds - 1)
    if error <= WITHIN:
        note = f"{time_text(measurement.seconds)}, {100 * error:.1f} % off"
        return Verdict(PASS, note=note, figures={"largest_error": error / WITHIN})
    if run.history.explained >= MOST_EXPLAINED:
        return wrong_times.wrong_time(answer.seconds, gpu)
    run.history.explained += 1
    with run.process_with_its_own_account() as process:
        is_long = answer.seconds > measurement.seconds
        blamed = _parts_to_blame(lambda gpu: run.measured(entry, gpu, process).seconds, measurement, is_long)
    return wrong_times.wrong_time(answer.seconds, gpu, *blamed)


def beside_ours(run: Run, exercise: Exercise, bytes_of_copy: int) -> str:
    """Returns what the entry says of a copy on the run's GPU beside our own measurement, for a note.

    It decides nothing: nobody knows the true time there, so none of the two can be called wrong.
    """
    try:
        with run.gpu.lent(bytes_of_copy, run.seed) as gpu, run.process_with_its_own_account() as process:
            seconds = run.measured(exercise.entry, gpu, process).seconds
    except (ChildEnded, ReplayEnded):
        seconds = None
    except GpuBusy:
        return ""
    if seconds is None:
        return "; a copy on this GPU: no answer"
    return (
        f"; a copy of {time_text(gpu.seconds)} on this GPU: {100 * (seconds / gpu.seconds - 1):+.1f} % beside our time"
    )


def _parts_to_blame(
    answered: Callable[[SimulatedGpu], float | None], measurement: SimulatedMeasurement, is_long: bool
) -> tuple[list[GpuPart], float | None]:
    """Returns the parts without which the same function is right, and what it answers without any part: None where that
    is no time. The list is empty where the answer is wrong without all parts, too.

    First it has to be half as near as is right, so that no part is blamed for what another has left of the room. The
    part comes first that, of these alone, makes the answer longest where it is too long, and shortest where too short.
    """
    answers: dict[frozenset[GpuPart], float | None] = {}

    def answer(without: Collection[GpuPart]) -> float | None:
        key = frozenset(without)
        if key not in answers:
            answers[key] = _answer(answered, measurement.gpu(key))
        return answers[key]

    def is_near(without: Collection[GpuPart], share: float) -> bool:
        found = answer(without)
        return found is not None and abs(found / measurement.seconds - 1) <= share

    def off_with(part: GpuPart, left_out: Collection[GpuPart]) -> float:
        found = answer([other for other in left_out if other != part])
        return -math.inf if found is None else found if is_long else -found

    # Without the host's time a warm-up is long, and with events nobody has to leave it out.
    all_but_host: list[GpuPart] = [part for part in GpuPart if part != GpuPart.HOST]
    for share in (WITHIN / 2, WITHIN):
        for left_out in (all_but_host, list(GpuPart)):
            if is_near(left_out, share):
                for part in tuple(left_out):
                    others = [other for other in left_out if other != part]
                    left_out = others if is_near(others, share) else left_out
                several = left_out if len(left_out) > 1 else []
                return sorted(several, key=lambda part: off_with(part, left_out), reverse=True) or left_out, None
    return [], answers[frozenset(GpuPart)]


def _answer(answered: Callable[[SimulatedGpu], float | None], gpu: SimulatedGpu) -> float | None:
    try:
        return answered(gpu)
    except (ChildEnded, EndlessMeasurement):
        return None
