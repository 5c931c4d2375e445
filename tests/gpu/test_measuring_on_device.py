"""On a GPU: a function that measures is asked about a copy there, and its answer stands beside our own measurement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.course.folder import Folder
from grader.explain.verdict import PASS, Verdict
from grader.gpu.device import Device, device_here
from grader.gpu.pool.replays import Replays
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import MeasuresUse
from tests.judging.test_measurements import EXERCISE, SOLUTION

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")

NOTE = re.compile(r"; a copy of \S+ .s on this GPU: ([+-][\d.]+) % beside our time")
WITHIN = 5  # per cent, on a machine that others use, too


@pytest.fixture
def replays() -> Iterator[Replays]:
    assert isinstance(HERE, Device)
    replays = Replays(HERE)
    yield replays
    replays.end()


def verdict_on(text: str, folder: Path, replays: Replays, copy: int) -> Verdict:
    (folder / "90_entry").mkdir()
    (folder / "90_entry" / "entry.py").write_text(text)
    run = Run(
        Folder(folder / "90_entry"), str(folder / "90_entry" / "entry.py"), 1, replays.device.model, replays=replays
    )
    try:
        return MeasuresUse("test_it", (1e-3,), copy=copy).verdict(Judge(EXERCISE, run))
    finally:
        run.end()


def test_the_solution_agrees_with_our_own_measurement(tmp_path, replays):
    verdict = verdict_on(SOLUTION.read_text(), tmp_path, replays, 1 << 30)
    assert verdict.outcome == PASS
    told = NOTE.search(verdict.note)
    assert told, verdict.note
    assert abs(float(told[1])) <= WITHIN, verdict.note


def test_a_sleep_without_end_is_left_and_the_pass_stays(tmp_path, replays):
    text = SOLUTION.read_text().replace("    run.draw_inputs()\n", "    run.draw_inputs()\n    device.sleep(1 << 34)\n")
    verdict = verdict_on(text, tmp_path, replays, 1 << 30)
    assert verdict.outcome == PASS and verdict.note.endswith("; a copy on this GPU: no answer"), verdict.note
