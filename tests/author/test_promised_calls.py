"""A promise without a limit, and a kind of values that no call has, are complaints of `course check`."""

from __future__ import annotations

import pytest

from grader.author import promised_calls
from grader.course.folder import Folder
from tests.conftest import ROOT
from tests.learn.conftest import Course


@pytest.fixture
def complaints(tmp_path):
    """complaints(before, after): what is said about exercise 09 with this change of its tests."""

    def complaints(before: str, after: str) -> list[str]:
        folder = Folder(Course(tmp_path).path / "exercises" / "09_layer_norm")
        text = folder.test_file.read_text()
        assert before in text
        folder.test_file.write_text(text.replace(before, after))
        return promised_calls.complaints(folder)

    return complaints


def test_an_exercise_of_the_course_has_none():
    assert promised_calls.complaints(Folder(ROOT / "exercises" / "09_layer_norm")) == []


def test_a_size_without_a_limit_is_told_with_what_to_write(complaints):
    (complaint,) = complaints("least=0, limit=2**30, block=8", "least=0, block=8")
    assert complaint.startswith("test_any_call_that_the_lesson_promises: the size M has no limit")
    assert "upto(40, limit=...)" in complaint


def test_a_kind_that_no_call_has_is_told_for_each_dtype(complaints, monkeypatch):
    drawn = promised_calls._calls
    monkeypatch.setattr(
        promised_calls, "_calls", lambda *of: [one for one in drawn(*of) if one.values["x"].__name__ != "thousands"]
    )
    found = complaints("least=0, limit=2**30, block=8", "least=0, limit=2**30, block=4")
    assert len(found) == 3 and all("x may hold thousands in " in one for one in found), found
