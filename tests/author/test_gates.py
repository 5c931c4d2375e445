"""Gates of speed are measured, kept, and held together with the tests; told without a GPU."""

from __future__ import annotations

import json

import pytest

from grader.author import gates
from grader.author.gates import complaints
from grader.course.folder import Folder
from grader.course.gate_figures import GateFigures, digest_of, keep_figures, kept_figures
from grader.judging.gate_measurement import timed_calls
from tests.conftest import ROOT, folders_with_speed

IDS = [folder.id for folder in folders_with_speed()]
SOFTMAX = Folder(ROOT / "exercises" / "03_softmax")
CALL = "03_softmax::test_it_reaches_the_gate"


@pytest.mark.parametrize("id", IDS)
def test_each_gate_is_the_one_that_was_measured(id):
    folder = Folder(ROOT / "exercises" / id)
    assert timed_calls(folder) and complaints(folder) == []
    assert folder.unwanted_file.exists()


@pytest.fixture
def kept(tmp_path, monkeypatch) -> dict:
    """Figures of 03 that a test may spoil."""
    figures = {name: vars(one) for name, one in kept_figures(SOFTMAX).items()}
    monkeypatch.setattr(
        gates, "kept_figures", lambda folder: {name: GateFigures(**one) for name, one in figures.items()}
    )
    return figures


def test_a_gate_that_was_never_measured_is_a_complaint(kept):
    del kept[CALL]
    assert "has no measured gate: course gate 03" in complaints(SOFTMAX)[0]


def test_a_gate_is_measured_again_when_its_solution_changes(kept):
    kept[CALL]["solution_digest"] = "0"
    assert "has changed since its gate was measured" in complaints(SOFTMAX)[0]


def test_versions_that_are_too_close_give_no_gate(kept):
    kept[CALL]["unwanted"] = [0.9, 0.95]
    assert "not 1.35 times as fast" in complaints(SOFTMAX)[0]


def test_the_number_in_the_test_is_that_of_the_rule(kept):
    kept[CALL]["unwanted"] = [0.1, 0.1]
    assert "demands 0.81, and the measured gate is 0.31" in complaints(SOFTMAX)[0]


def test_words_do_not_change_a_digest(tmp_path):
    one, other, third = (tmp_path / name for name in ("one.py", "other.py", "third.py"))
    one.write_text('"""Text."""\nx = 1  # why\n')
    other.write_text('"""Other text."""\n\n\nx = 1\n')
    third.write_text("x = 2\n")
    assert digest_of(one) == digest_of(other) != digest_of(third)


def test_figures_are_kept_beside_those_of_other_exercises(tmp_path):
    (tmp_path / "exercises" / "03_softmax").mkdir(parents=True)
    (tmp_path / "solutions").mkdir()
    folder = Folder(tmp_path / "exercises" / "03_softmax")
    one = GateFigures("GPU", {"triton": "3.6.0"}, "2026-11-20", "0", [0.9], [0.5])
    keep_figures(folder, {"01::a": one})
    keep_figures(folder, {"03::b": one})
    assert json.loads((tmp_path / "solutions" / "gate_figures.json").read_text()).keys() == {"01::a", "03::b"}
