"""A gate that was measured on another GPU: what reaches the same part of the solution's speed here is fast enough."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from grader.course.folder import Folder
from grader.course.gate_figures import (
    CALIBRATION,
    BadFigures,
    GateFigures,
    calibration,
    digest_of,
    keep_calibration,
    kept_figures,
)
from grader.doctor.calibrate import count_measured, gates_line
from grader.explain.medal_words import BRONZE, SILVER
from grader.explain.verdict import FAIL, INCONCLUSIVE, PASS
from grader.gpu.pool.replay_process import ReplayEnded
from grader.judging.gate_here import Gate, gate_here
from tests.conftest import ROOT
from tests.judging.test_medals import OTHER, SOLUTION, measured  # noqa: F401

TEST = "test_it_reaches_the_gate"
NAME = f"01_masked_add::{TEST}"
H200, T4 = "NVIDIA H200", "Tesla T4"
ELSEWHERE = Gate(0.4, 0.5, H200)


@pytest.fixture
def folder(tmp_path) -> Folder:
    """Exercise 01 of a course of its own, with its solution and the figures of all gates."""
    for part in ("exercises/01_masked_add", "solutions"):
        shutil.copytree(ROOT / part, tmp_path / part)
    return Folder(tmp_path / "exercises" / "01_masked_add")


def figures(folder: Folder, gpu: str = T4, solution: float = 0.8, unwanted: float = 0.3) -> dict[str, GateFigures]:
    return {NAME: GateFigures(gpu, {}, "2026-11-28", digest_of(folder.solution_file), [solution] * 5, [unwanted] * 5)}


def test_where_it_was_measured_nothing_but_the_gate_is_enough(folder):
    assert kept_figures(folder)[NAME].gpu == H200
    assert gate_here(folder, TEST, 0.5, H200) == Gate(0.5)


def test_elsewhere_the_same_part_of_the_solutions_speed_is_enough(folder):
    solution = kept_figures(folder)[NAME].solution[0]
    assert gate_here(folder, TEST, 0.5, T4) == Gate(0.5, 0.5 / solution, H200)
    assert 0.5 / solution < 0.85  # so the solution itself passes on any GPU


def test_what_was_measured_on_this_gpu_counts_first(folder):
    keep_calibration(folder.root, figures(folder))
    assert gate_here(folder, TEST, 0.5, T4) == Gate(0.48)  # the middle of 0.8 and 0.3, as a product
    assert gate_here(folder, TEST, 0.5, "NVIDIA L4").measured_on == H200


def test_where_an_unwanted_kernel_is_as_fast_nothing_is_asked(folder):
    keep_calibration(folder.root, figures(folder, unwanted=0.7))
    assert gate_here(folder, TEST, 0.5, T4) is None


def test_figures_of_another_solution_do_not_count(folder):
    keep_calibration(folder.root, figures(folder))
    folder.solution_file.write_text(folder.solution_file.read_text() + "\nX = 1\n")
    assert gate_here(folder, TEST, 0.5, T4).measured_on == H200


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"a": 1}', '{"a": {"gpu": "T4"}}', "\x00", json.dumps({NAME: {"solution": [0.0]}})],
)
def test_a_file_that_cannot_be_read_is_told_and_counts_for_nothing(folder, text):
    keep_calibration(folder.root, figures(folder))
    (folder.root / CALIBRATION).write_text(text)
    with pytest.raises(BadFigures, match="cannot be read .* Next: delete it, or measure anew: course doctor"):
        calibration(folder.root)
    assert gate_here(folder, TEST, 0.5, T4).measured_on == H200
    assert "cannot be read" in gates_line(folder.root, [folder], T4)
    keep_calibration(folder.root, figures(folder))
    assert count_measured(folder.root, [folder], T4) == 1


def test_the_doctor_says_whose_gates_they_are(folder):
    assert "course doctor --calibrate" in gates_line(folder.root, [folder], T4)
    assert "were measured on a GPU like this one" in gates_line(folder.root, [folder], H200)
    keep_calibration(folder.root, figures(folder))
    assert gates_line(folder.root, [folder], T4) == "1 measured on this GPU"
    assert gates_line(folder.root, [folder], H200).startswith(f"{CALIBRATION} is of {T4} and not used here.")


# ---- in the judge ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part, medal", [(0.6, BRONZE), (0.93, SILVER)])
def test_a_kernel_that_reaches_this_part_of_the_solution_passes(measured, part, medal):  # noqa: F811
    verdict, _ = measured(OTHER, 0.3 * part, 0.3, gate=ELSEWHERE)
    assert verdict.outcome == PASS
    assert (
        f"; {part:.2f} of the solution's speed on this GPU, needed 0.50: the gate of 40 % was measured" in verdict.note
    )
    assert f"on another, {H200}; {medal}" in verdict.note


def test_the_solution_passes_where_it_misses_the_gate(measured):  # noqa: F811
    assert measured(SOLUTION, 0.1, 0.1, gate=ELSEWHERE)[0].outcome == PASS


def test_a_kernel_that_does_not_is_told_both(measured):  # noqa: F811
    verdict, drawn = measured(OTHER, 0.1, 0.3, gate=ELSEWHERE)
    assert verdict.outcome == FAIL and drawn["solution"] == 2
    assert (
        f"The gate was measured on another GPU, {H200}. Here your kernel has 0.33 of the speed of the solution; 0.50"
        in (" ".join(verdict.lines))
    )


def test_a_kernel_that_is_close_to_it_is_not_failed(measured):  # noqa: F811
    verdict, _ = measured(OTHER, [0.12, 0.16, 0.14, 0.17, 0.13], 0.3, gate=ELSEWHERE)
    assert verdict.id == INCONCLUSIVE and "of the solution's speed on this GPU, needed 0.50: too close" in verdict.note


@pytest.mark.parametrize("theirs", [["a timed call is wrong"], [ReplayEnded("time", "")], [math.nan], []])
def test_where_the_solution_cannot_be_timed_nothing_is_failed(measured, theirs):  # noqa: F811
    verdict, _ = measured(OTHER, 0.1, theirs, gate=ELSEWHERE)
    assert verdict.id == INCONCLUSIVE and "could not be timed here to compare with" in verdict.note


def test_a_wrong_result_in_a_sample_for_the_comparison_is_told(measured):  # noqa: F811
    verdict, _ = measured(OTHER, [0.1, 0.1, "a timed call is wrong"], 0.1, gate=ELSEWHERE)
    assert verdict.outcome == FAIL and verdict.id == "wrong-while-timed"


def test_a_gate_of_this_gpu_is_not_softened(measured):  # noqa: F811
    verdict, drawn = measured(OTHER, 0.3, 0.3)
    assert verdict.outcome == FAIL and drawn["solution"] == 0
