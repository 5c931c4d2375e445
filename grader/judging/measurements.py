"""The verdict on a function that measures: it is asked about kernels on simulated GPUs, whose true times are known.

A wrong answer is explained by asking again: on the same GPU without what may make a measurement wrong, part by part.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection
from dataclasses import dataclass

from grader.course.exercise import Exercise
from grader.explain import failures, wrong_times
from grader.explain.verdict import PASS, Verdict
from grader.explain.wrong_times import time_text
from grader.gpu.simulated_gpu import Endless, Part, SimulatedGpu, Traits, drawn_traits
from grader.judging.run import Run
from grader.processes.faults import ChildEnded

WITHIN = 0.02  # share of the true time by which a right answer may be off
MOST_EXPLAINED = 1  # wrong answers of a run: one is told
MOST_COMPUTING = 4.0  # seconds of a core to explain one: all calls of a run share what they may take


@dataclass(frozen=True)
class Measurement:
    """A kernel of so many seconds on a GPU with these traits. `seed`: of what happens there."""

    seconds: float
    traits: Traits
    seed: str

    def gpu(self, without: Collection[Part] = ()) -> SimulatedGpu:
        return SimulatedGpu(self.traits, self.seconds, self.seed, without)

    @property
    def label(self) -> str:
        return f"a kernel of {time_text(self.seconds)}, a launch of about {time_text(self.traits.launch)}"


def drawn_measurement(run: Run, test: str, number: int, *seconds: float) -> Measurement:
    """Returns the measurement of this test with this number, on a GPU that the run's seed draws. seconds: of the
    kernel, or the least and the most that it may take."""
    seed = f"{run.seed} {run.folder.id} {test} {number}"
    numbers = random.Random(f"{seed} traits")
    drawn = math.exp(numbers.uniform(math.log(min(seconds)), math.log(max(seconds))))
    return Measurement(float(f"{drawn:.4g}"), drawn_traits(numbers), seed)


def measured_verdict(run: Run, exercise: Exercise, measurement: Measurement) -> Verdict:
    """Returns the verdict on what the entry answers to a measurement. Raises ChildEnded, MachineFault."""
    entry, gpu = exercise.entry, measurement.gpu()
    began = run.process.seconds_of_a_core
    try:
        answer = run.measured(entry, gpu)
    except Endless as limit:
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
    asked_again = len(Part) + 2  # times
    computed = run.process.seconds_of_a_core - began
    is_explained = run.history.explained < MOST_EXPLAINED and asked_again * computed < MOST_COMPUTING
    if not is_explained:
        return wrong_times.wrong_time(answer.seconds, gpu)
    run.history.explained += 1
    return wrong_times.wrong_time(answer.seconds, gpu, *_parts_to_blame(run, entry, measurement))


def _parts_to_blame(run: Run, entry: str, measurement: Measurement) -> tuple[list[Part], float | None]:
    """Returns the parts without which the same function is right, none of which may be there; and what it answers
    without any part. The list is empty where that is wrong, too."""
    # Without the host's time a warm-up is long, and with events nobody has to leave it out.
    left_out: list[Part] = [part for part in Part if part != Part.HOST]
    ideal = _answer(run, entry, measurement, left_out)
    if ideal is None or not _is_right(ideal, measurement):
        left_out = list(Part)
        ideal = _answer(run, entry, measurement, left_out)
    if ideal is None or not _is_right(ideal, measurement):
        return [], ideal
    for part in list(left_out):
        others = [other for other in left_out if other != part]
        answer = _answer(run, entry, measurement, others)
        if answer is not None and _is_right(answer, measurement):
            left_out = others
    return left_out, ideal


def _answer(run: Run, entry: str, measurement: Measurement, without: Collection[Part]) -> float | None:
    """Returns what the entry answers on the GPU without these parts; None where it answers no time."""
    try:
        return run.measured(entry, measurement.gpu(without)).seconds
    except (ChildEnded, Endless):
        return None


def _is_right(answer: float, measurement: Measurement) -> bool:
    return abs(answer / measurement.seconds - 1) <= WITHIN
