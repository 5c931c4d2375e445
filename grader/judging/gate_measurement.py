"""Measures on a GPU where the gates of an exercise belong: between its solution and a version that nobody wants."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date

from grader.course.folder import Folder, load_test_file
from grader.course.gate_figures import GateFigures, digest_of
from grader.explain.verdict import Verdict
from grader.gpu.answers import Measurement
from grader.gpu.device import Device
from grader.gpu.pool.replays import Replays
from grader.judging.gate_here import gate_of
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.speed_rule import LEAST_GAP
from grader.judging.speed_samples import not_timed, samples_of
from grader.judging.uses import ThroughputUse, uses_asked

SAMPLES = 5


class NotMeasured(Exception):
    """A gate has no figures: a file is missing or makes no call, a result was wrong, or the GPU is noisy.

    The message says which.
    """


def timed_calls(folder: Folder) -> list[ThroughputUse]:
    return uses_asked(load_test_file(folder), ThroughputUse)


def measure(folder: Folder, device: Device, replays: Replays, say: Callable[[str], None]) -> dict[str, GateFigures]:
    """Returns figures by "NN_name::test", without the calls that this GPU does not time.

    say: gets a line for each call. The submissions are the course's own: their values are verified while they are
    timed, and not before. Raises NotMeasured.
    """
    gates = {}
    for call in timed_calls(folder):
        if why := not_timed(device.model, call.anchor, call.since):
            say(f"{folder.id}::{call.test}: {why}")
            continue
        shares, versions = {}, {}
        for kind, path in (("solution", folder.solution_file), ("unwanted", folder.unwanted_file)):
            if not path.is_file():
                raise NotMeasured(
                    f"{path} is missing: a gate lies between the solution and a version that nobody wants"
                )
            run = Run(folder, str(path), model=device.model, replays=replays)
            try:
                shares[kind] = sorted(round(sample.share, 4) for sample in _samples(run, folder, call))
                versions = run.process.versions
            finally:
                run.end()
        if not all(shares.values()):
            raise NotMeasured(f"{call.test} is too noisy to be measured now")
        digest = digest_of(folder.solution_file)
        figures = GateFigures(device.name, versions, str(date.today()), digest, shares["solution"], shares["unwanted"])
        gates[f"{folder.id}::{call.test}"] = figures
        say(_line(folder, call, figures))
    return gates


def _samples(run: Run, folder: Folder, call: ThroughputUse) -> list[Measurement]:
    exercise = load_test_file(folder).exercise
    judge = Judge(exercise, run)
    (trial,) = call.trials(judge)
    samples: list[Measurement] = []
    packed = judge.launch_plan(trial)
    if isinstance(packed, Verdict):
        raise NotMeasured(f"{run.submission.path}: {packed.lines[0]}")
    if not packed.plan.kernels:
        raise NotMeasured(f"{run.submission.path} launches no kernel here")
    drawn = samples_of(run, trial, packed, call.anchor)
    for sample, _ in zip(drawn, range(3 * SAMPLES)):
        if sample.wrong:
            raise NotMeasured(f"{run.submission.path}: {sample.wrong}")
        samples += [] if math.isnan(sample.share) else [sample]
        if len(samples) == SAMPLES:
            break
    return samples


def _line(folder: Folder, call: ThroughputUse, figures: GateFigures) -> str:
    def span(shares: list[float]) -> str:
        return f"{shares[0]:.3f} to {shares[-1]:.3f}"

    gate = gate_of(figures)
    gate_text = f"gate {gate:.2f}" if gate else f"no gate: they differ by less than {LEAST_GAP}"
    measured = f"solution {span(figures.solution)}, unwanted {span(figures.unwanted)} of the {call.anchor}"
    return f"{folder.id}::{call.test}: {measured}; {gate_text}, the test says {call.at_least}"
