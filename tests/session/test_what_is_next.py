"""The report's last line after an exercise is passed, and how many points an exercise has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.course.folder import Folder
from grader.explain.causes import Cause
from grader.explain.verdict import NOT_RUN, PASS, SKIPPED, Verdict, failed
from grader.session import session
from grader.session.grading import Grading
from grader.session.terminal_report import _next

NAMES = ("01_first", "02_second", "03_third", "04_fourth")
PASSED = "outcome=pass passed=2026-01-02T00:00:00Z last=2026-01-02T00:00:00Z runs=1"


@pytest.fixture
def course(tmp_path) -> Path:
    for name in NAMES:
        (tmp_path / "exercises" / name).mkdir(parents=True)
        (tmp_path / "exercises" / name / f"test_{name[3:]}.py").touch()
    return tmp_path


def next_after(course: Path, name: str, *passed: str, submission: str = "") -> str:
    """The last line after this exercise is passed, with these in progress.txt."""
    (course / "progress.txt").write_text("".join(f"{one}  {PASSED}\n" for one in passed))
    folder = Folder(course / "exercises" / name)
    path = Path(submission) if submission else folder.learner_file
    run = SimpleNamespace(submission=SimpleNamespace(path=path), replays=None)
    results = [session.TestResult("test_it", "right", 1, Verdict(PASS))]
    return _next(Grading(folder, run, results=results, tests=1))


def test_the_next_exercise_on_the_path_is_named(course):
    assert next_after(course, "02_second", "02_second").startswith("Next: 03_third. Open ")


def test_an_exercise_that_is_passed_is_no_next_one(course):
    assert next_after(course, "02_second", "01_first", "02_second", "03_third").startswith("Next: 04_fourth. Open ")


def test_what_was_left_out_before_is_named_as_that(course):
    said = next_after(course, "03_third", "01_first", "03_third", "04_fourth")
    assert said.startswith("Next: 02_second, which is still open. Open ")


def test_after_all_of_them_there_is_no_next_one(course):
    assert next_after(course, "04_fourth", *NAMES) == next_after(course, "02_second", *NAMES)
    assert next_after(course, "02_second", *NAMES).startswith("Next: every exercise is passed.")


def test_another_file_has_no_progress_here(course):
    said = next_after(course, "02_second", *NAMES, submission="/elsewhere/second.py")
    assert said.startswith("Next: 03_third. Open ")


def test_an_error_in_the_text_leaves_the_points_that_values_have():
    wrong, refused = failed(Cause.WRONG_VALUES), failed(Cause.NOT_ALLOWED, kind="file")
    skipped = Verdict(SKIPPED, NOT_RUN)

    def possible(of_values: Verdict, of_speed: Verdict) -> float:
        tests = [session.TestResult("test_values", "right", 2, of_values)]
        tests.append(session.TestResult("test_speed", "speed", 3, of_speed, only_on_gpu=True))
        return Grading(None, None, results=tests, tests=2).points[1]

    assert possible(wrong, skipped) == possible(refused, refused) == 2
    assert possible(wrong, wrong) == 5  # a sample of its programs shows it, here
