"""A folder is an exercise where it has a test file, and a lesson to read where it has a text alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.folder import Folder, all_folders, all_lessons, said_of_lesson


@pytest.fixture
def root(tmp_path) -> Path:
    """A course of a lesson, two exercises, and folders that are neither."""
    for name in (
        "00_words/README.md", "03_twice/README.md", "03_twice/test_twice.py", "05_half/test_half.py",
        "07_lost/README.md", "07_lost/lost.py", "08_empty/notes.txt", "words/README.md",
    ):  # fmt: skip
        path = tmp_path / "exercises" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_an_exercise_has_a_test_file_and_a_lesson_has_a_text_alone(root):
    assert [folder.id for folder in all_folders(root)] == ["03_twice", "05_half"]
    assert [folder.id for folder in all_lessons(root)] == ["00_words"]


def test_a_lesson_is_followed_by_an_exercise(root):
    lesson = Folder(root / "exercises" / "00_words")
    assert lesson.next().id == "03_twice"
    assert said_of_lesson(lesson) == "00 is a lesson to read: exercises/00_words/README.md. Next: 03_twice"
    last = root / "exercises/09_words"
    last.mkdir()
    (last / "README.md").touch()
    assert said_of_lesson(Folder(last)) == "09 is a lesson to read: exercises/09_words/README.md."
