"""Hints: which failure they speak of, in what order they open, and what is noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.folder import Folder, all_folders
from grader.progress.hints import read_hints

ROOT = Path(__file__).resolve().parents[2]
IDS = [folder.id for folder in all_folders(ROOT)]

# What learners get wrong first, and the first hint that speaks of it. `course check` asks for every mutant.
SPEAKS = [
    ("01_masked_add", "oob-store", 1),
    ("01_masked_add", "unwritten", 1),
    ("02_strided_blocks", "stride-ignored", 1),
    ("02_strided_blocks", "oob-store", 1),
    ("03_softmax", "padding-counted", 1),
    ("03_softmax", "underflow", 1),
    ("03_softmax", "not-divided", 2),
    ("04_transpose", "input-passed-through", 1),
    ("04_transpose", "misplaced-tile", 1),
    ("05_grouped_matmul", "half-accumulator", 1),
    ("05_grouped_matmul", "traffic", 1),
]


@pytest.mark.parametrize("id", IDS)
def test_there_are_three_levels_and_an_explanation(id):
    hints = read_hints(Folder(ROOT / "exercises" / id))
    assert [hint.level for hint in hints.levels] == [1, 2, 3]
    assert [hint.title for hint in hints.levels] == ["Where to look", "The idea", "Nearly the line"]
    shown = "\n".join(passage.text for hint in hints.levels for passage in hint.passages) + hints.explanation
    assert "<!--" not in shown and "details>" not in shown and "Next: hint" not in shown
    assert "Common wrong turns" in hints.explanation


@pytest.mark.parametrize(("id", "cause", "level"), SPEAKS)
def test_a_cause_leads_to_a_hint(id, cause, level):
    hints = read_hints(Folder(ROOT / "exercises" / id))
    assert hints.level_for(cause, opened=0) == level
    assert hints.level_for(cause, opened=3) in (2, 3)  # all are open: the last that speaks of it
    assert hints.level_for("no-such-cause", opened=0) == 0


def test_the_last_line_of_a_run_points_to_the_hint_that_fits(tried):
    tried.here("hint", "03")
    done = tried.pytest("exercises/03_softmax")
    assert done.lines[-1].endswith("Stuck? course hint 03: hint 2 speaks of this")


def test_what_fails_again_after_a_pass_has_its_hints(course):
    course.write("01_masked_add")
    course.pytest("exercises/01_masked_add")
    assert course.here("hint", "01").status == 1
    course.write("01_masked_add", "x_ptr + offsets, mask=mask", "x_ptr + offsets")
    said = course.pytest("exercises/01_masked_add").lines[-1]
    assert "Stuck? course hint 01" in said and course.here("hint", "01").status == 0


def test_a_mistake_that_no_hint_speaks_of_gets_the_plain_line(course):
    course.write("01_masked_add", "return z", "return None")
    assert course.pytest("exercises/01_masked_add").lines[-1].endswith("run it again. Stuck? course hint 01")


def test_hints_open_one_by_one_and_know_the_last_failure(tried):
    first = tried.here("hint", "03")
    assert first.status == 0 and first.lines[0].startswith("Your last run: The rows of z do not sum to 1: the 243")
    assert "Hint 1 of 3 for 03_softmax: Where to look" in first.out
    marked = first.out.partition("> This speaks of your last run:")[2]
    assert marked.strip().startswith("Take a row of 5 values") and "The idea" not in first.out
    assert first.lines[-1].endswith("course hint 03 opens hint 2, and hint 2 speaks of your last run")
    assert "Hint 2 of 3" in tried.here("hint", "softmax").out
    third = tried.here("hint", "3")
    assert "Hint 3 of 3" in third.out and "course solution 03 --give-up" in third.lines[-1]
    assert " hints=3 " in tried.progress


def test_without_a_name_it_is_the_exercise_that_failed_last(tried):
    assert "Hint 1 of 3 for 05_grouped_matmul" in tried.here("hint").out


def test_after_the_last_hint_the_open_ones_can_be_read_again(course):
    for _ in range(3):
        course.here("hint", "04")
    fourth = course.here("hint", "04")
    assert fourth.status == 0 and "All 3 hints of 04_transpose are open. Here they are again." in fourth.out
    again = course.here("hint", "04", "--again")
    assert [f"Hint {n} of 3" in again.out for n in (1, 2, 3)] == [True] * 3


def test_again_before_any(course):
    done = course.here("hint", "04", "--again")
    assert done.status == 1 and "No hint of 04_transpose is open yet." in done.err
    assert not (course.path / "progress.txt").exists()


def test_all_hints_at_once_asks_first(course):
    refused = course.here("hint", "02", "--all", answer="n\n")
    assert refused.status == 1 and "Hint 1 of 3" not in refused.out
    assert not (course.path / "progress.txt").exists()
    opened = course.here("hint", "02", "--all", answer="y\n")
    assert "Hint 1 of 3" in opened.out and "Hint 3 of 3" in opened.out
    assert "02_strided_blocks  hints=3" in course.progress


def test_an_exercise_without_hints(tried):
    (tried.path / "hints/04_transpose.md").unlink()
    done = tried.here("hint", "04")
    assert done.status == 1 and "The hints of 04_transpose cannot be read: No such file" in done.err
    assert "Stuck?" not in tried.pytest("exercises/04_transpose").lines[-1]
