"""The line that folds what is graded states the points of the test file."""

from __future__ import annotations

import pytest

from grader.author import lesson_points
from grader.course.folder import Folder, all_folders
from tests.conftest import ROOT
from tests.learn.conftest import Course


@pytest.mark.parametrize("folder", all_folders(ROOT), ids=lambda folder: folder.id)
def test_each_lesson_states_its_points(folder):
    assert lesson_points.complaints(folder) == []


@pytest.fixture
def lesson(tmp_path):
    """lesson(before, after): the complaints about the lesson of 01 with this change."""

    def lesson(before: str, after: str) -> list[str]:
        folder = Folder(Course(tmp_path).path / "exercises" / "01_masked_add")
        text = folder.lesson_file.read_text()
        assert before in text
        folder.lesson_file.write_text(text.replace(before, after))
        return lesson_points.complaints(folder)

    return lesson


def test_other_points_are_a_complaint(lesson):
    (complaint,) = lesson("<summary>18 points: 10 for", "<summary>17 points: 9 for")
    assert complaint.startswith("exercises/01_masked_add/README.md states '17 points: 9 for values")
    assert "and there are 18 points: 10 for values" in complaint


def test_a_list_that_is_not_folded_is_a_complaint(lesson):
    (complaint,) = lesson("<details><summary>18 points", "<summary>18 points")
    assert "does not fold what is graded behind <details><summary>18 points: 10 for" in complaint


def test_a_terminal_shows_the_line_and_the_list(tmp_path):
    shown = Course(tmp_path).here("open", "01").out
    assert "18 points: 10 for values and memory safety" in " ".join(shown.split())
    assert "details>" not in shown and "Memory safety: nothing is" in shown
