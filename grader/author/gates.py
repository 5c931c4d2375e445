"""Where the gates of speed stand: measured on a GPU between the solution and a version that nobody wants.

tests/gates/NN_name/NAME.py is that version, as fast as it can be; tests/gates/figures.json keeps what was measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from grader.course.code_digest import digest_of_code
from grader.course.folder import Folder, load_test_file
from grader.course.stated_calls import THROUGHPUT, asked
from grader.files import write_whole
from grader.gpu.answers import Measurement
from grader.gpu.device import Device
from grader.gpu.pool.replays import Replays
from grader.judge.judge import Judge
from grader.judge.run import Run
from grader.judge.speed_rule import LEAST_GAP, gate_between
from grader.judge.speed_samples import samples_of
from grader.numerics.data_sets import Data

SAMPLES = 5
FIGURES = "figures.json"


@dataclass(frozen=True)
class TimedCall:
    """What a test asks of `throughput`."""

    test: str
    data: tuple[Data, ...]
    anchor: str
    gate: float


@dataclass
class Figures:
    """Shares of the anchor's speed: of the solution and of the unwanted version, one per process, lowest first."""

    gpu: str
    versions: dict[str, str]
    date: str
    solution_digest: str
    solution: list[float]
    unwanted: list[float]

    @property
    def gate(self) -> float | None:
        """What the rule gives; None where the two are too close for a gate."""
        return gate_between(self.solution[0], self.unwanted[-1])


def timed_calls(folder: Folder) -> list[TimedCall]:
    return [
        TimedCall(one.test, one.data, one.options.get("anchor", "copy"), one.options["at_least"])
        for one in asked(load_test_file(folder), THROUGHPUT)
    ]


def measure(folder: Folder, device: Device, replays: Replays, say: Callable[[str], None]) -> dict[str, Figures]:
    """Figures by test. The submissions are ours: their values are verified while they are timed, and not before."""
    found = {}
    for call in timed_calls(folder):
        shares, versions = {}, {}
        for kind, path in (("solution", folder.solution_file), ("unwanted", unwanted_file(folder))):
            run = Run(folder, str(path), model=device.model, replays=replays)
            try:
                shares[kind] = sorted(round(sample.share, 4) for sample in _samples(run, folder, call))
                versions = run.recorder.versions
            finally:
                run.end()
        digest = digest_of(folder.solution_file)
        figures = Figures(device.name, versions, str(date.today()), digest, shares["solution"], shares["unwanted"])
        found[f"{folder.id}::{call.test}"] = figures
        say(_line(folder, call, figures))
    return found


def _samples(run: Run, folder: Folder, call: TimedCall) -> list[Measurement]:
    exercise = load_test_file(folder).exercise
    trial = Judge(exercise, run).trial(call.test, call.data, exercise.dtypes[0])
    samples = []
    for sample in samples_of(run, exercise, trial, run.recording(exercise, trial), call.anchor):
        if sample.wrong:
            raise ValueError(f"{run.submission.path}: {sample.wrong}")
        samples += [] if math.isnan(sample.share) else [sample]
        if len(samples) == SAMPLES:
            return samples
    return samples


def _line(folder: Folder, call: TimedCall, figures: Figures) -> str:
    def span(shares: list[float]) -> str:
        return f"{shares[0]:.3f} to {shares[-1]:.3f}"

    gate = f"gate {figures.gate:.2f}" if figures.gate else f"no gate: they differ by less than {LEAST_GAP}"
    measured = f"solution {span(figures.solution)}, unwanted {span(figures.unwanted)} of the {call.anchor}"
    return f"{folder.id}::{call.test}: {measured}; {gate}, the test says {call.gate}"


def complaints(folder: Folder) -> list[str]:
    """What is wrong with the gates of an exercise, told without a GPU."""
    kept, found = kept_figures(folder), []
    for call in timed_calls(folder):
        figures = kept.get(f"{folder.id}::{call.test}")
        if figures is None:
            found.append(f"{call.test} has no measured gate: course gate {folder.number}")
        elif figures.solution_digest != digest_of(folder.solution_file):
            found.append(
                f"{call.test}: the solution has changed since its gate was measured: course gate {folder.number}"
            )
        elif figures.gate is None:
            found.append(f"{call.test}: the solution is not {LEAST_GAP} times as fast as the unwanted version")
        elif call.gate != figures.gate:
            found.append(f"{call.test} demands {call.gate}, and the measured gate is {figures.gate}")
    return found


def digest_of(path: Path) -> str:
    return digest_of_code(path.read_text("utf-8"))


def unwanted_file(folder: Folder) -> Path:
    return folder.root / "tests" / "gates" / folder.id / f"{folder.name}.py"


def kept_figures(folder: Folder) -> dict[str, Figures]:
    path = folder.root / "tests" / "gates" / FIGURES
    if not path.exists():
        return {}
    return {name: Figures(**data) for name, data in json.loads(path.read_text("utf-8")).items()}


def keep_figures(folder: Folder, figures: dict[str, Figures]) -> None:
    kept = {**kept_figures(folder), **figures}
    text = json.dumps({name: asdict(one) for name, one in sorted(kept.items())}, indent=1)
    write_whole(folder.root / "tests" / "gates" / FIGURES, text + "\n")
