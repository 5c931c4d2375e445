"""`course check --findings FILE`: what every proof found, the same whenever the same is proven."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.author import first_tests
from grader.author.kept_findings import as_text
from grader.author.operators import changed_solutions
from grader.author.proof import Outcome, Proof
from grader.course.folder import Folder
from tests.learn.conftest import Course

ID = "37_bias_residual"
# How many elements are wrong, and so what a learner reads, differs from seed to seed.
COUNTS_WHAT_IS_DRAWN = """
[large_ones_are_left]
wrong = "what is above 1.5 is not multiplied."
finding = "wrong-values"
sentence = "z is wrong in ... of"
changes = [["x * s, mask", "tl.where(x > 1.5, x, x * s), mask"]]
"""


TESTS = ("test_one_full_block", "test_the_last_block_has_one_element", "test_any_call_that_the_lesson_promises")


@pytest.fixture
def course(tmp_path) -> Course:
    """A course with a new exercise that asks for few things: each of them is proven twice."""
    course, folder = Course(tmp_path), Folder(tmp_path / "exercises" / ID)
    course.here("new", ID)
    with folder.mistakes_file.open("a") as file:
        file.write(COUNTS_WHAT_IS_DRAWN)
    head, *tests = re.split(r"^(?=def )", folder.test_file.read_text(), flags=re.MULTILINE)
    kept = [test for test in tests if test[4:].startswith(TESTS)]
    assert len(kept) == len(TESTS)
    folder.test_file.write_text(head + "".join(kept))
    return course


def test_two_runs_find_the_same(course, proven_here):
    course.here("check", ID, "--findings", "one.txt", "--jobs", "1")
    done = course.here("check", ID, "--findings", "two.txt", "--first-tests", "--jobs", "1")
    assert done.lines[-2] == "Kept in solutions/first_tests.json."
    assert first_tests.read(course.path)[f"solutions/{ID}/mistakes.toml: mask_less_or_equal"] == (
        "test_the_last_block_has_one_element",
    )
    one, two = ((course.path / name).read_text() for name in ("one.txt", "two.txt"))
    assert one == two
    solution = (course.path / "solutions" / ID / f"{ID[3:]}.py").read_text()
    by_operators = {name for name, *_ in changed_solutions(solution)}
    every = [line.split("\t") for line in one.splitlines()]
    rows = [row for row in every if row[1].rpartition(": ")[2] not in by_operators]
    assert len(every) == len(rows) + len(by_operators - {"contiguous_on_host"})
    assert [row[:4] for row in rows] == [
        [ID, f"exercises/{ID}/bias_residual.py", "not attempted", "-"],
        [ID, f"solutions/{ID}/accepted/persistent_grid.py", "pass", "-"],
        [ID, f"solutions/{ID}/bias_residual.py", "pass", "-"],
        [ID, f"solutions/{ID}/mistakes.toml: large_ones_are_left", "fail", "wrong-values"],
        [ID, f"solutions/{ID}/mistakes.toml: mask_less_or_equal", "fail", "oob-store"],
    ]
    assert rows[3][4].startswith("z is wrong in ") and rows[4][4].startswith("The mask of the store in line 18 ")


def test_a_line_holds_all_ids_and_the_first_line_told():
    first, second = (
        Proof("mutant", name, Path("exercises/01_few"), "", "fail") for name in ("tests/a.toml: b", "solutions/c.py")
    )
    outcomes = [
        Outcome(first, "", 1.0, "fail", ("race", "oob-load"), "A\trace.\nLine 3"),
        Outcome(second, "", 2.0, "pass"),
        Outcome(second, "pytest gave no result: nothing"),
    ]
    assert as_text(outcomes) == (
        "01_few\tsolutions/c.py\t-\t-\t-\n"
        "01_few\tsolutions/c.py\tpass\t-\t-\n"
        "01_few\ttests/a.toml: b\tfail\trace oob-load\tA race.\n"
    )


def test_a_file_that_cannot_be_there_is_told_before_anything_is_proven(course):
    done = course.here("check", ID, "--findings", "nowhere/findings.txt")
    assert done.status == 2 and done.out == ""
    assert f"--findings nowhere/findings.txt: there is no folder {course.path}/nowhere." in done.err
