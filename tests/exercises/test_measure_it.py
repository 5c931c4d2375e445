"""Lesson 42: its first table is what the mistakes of the exercise answer on one simulated GPU."""

from __future__ import annotations

import re

import pytest

from grader.author.facts import fact_of
from grader.course.folder import Folder
from tests.conftest import ROOT

FOLDER = Folder(ROOT / "exercises" / "42_measure_it")
ROWS = re.findall(
    r"^\| (.+?) \| ([\d.]+) µs \| ([\d.]+) ms \|$", FOLDER.lesson_file.read_text(encoding="utf-8"), re.MULTILINE
)
GPU = {"launch": 20e-6, "synchronization": 8e-6, "saved_share": 0.5, "disturbed": 0.05}
MISTAKES = (
    "launch_timed", "host_timed", "synchronized_rounds", "warm_cache", "zeros", "mean", "least_of_the_rounds",
)  # fmt: skip


@pytest.mark.parametrize("mistake, row", [*zip(MISTAKES, ROWS)])
def test_the_lesson_says_what_a_mistake_answers(mistake, row):
    for seconds, told in ((30e-6, float(row[1])), (1e-3, 1e3 * float(row[2]))):
        answer = fact_of(FOLDER, {"fact": "answer", "seconds": seconds, "mutant": mistake, "gpu": GPU})
        assert answer == pytest.approx(told, abs=0.5 if seconds < 1e-4 else 6)


def test_each_mistake_has_its_row():
    assert len(ROWS) == len(MISTAKES)
