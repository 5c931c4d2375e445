"""The path through the course: the rows of course.md are its only order, and every command follows them."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise

import pytest

from grader.course.folder import ROW, Folder, all_folders, all_lessons, load_test_file
from tests.learn.conftest import ROOT

LESSONS, PATH = all_lessons(ROOT), all_folders(ROOT)
FIRST_ROW = re.compile(r"^\| \[01_.*\n", re.MULTILINE)


def row_of(folder: Folder) -> list[str]:
    (row,) = [line for line in (ROOT / "course.md").read_text().splitlines() if line.startswith(f"| [{folder.id}]")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_each_exercise_has_one_row():
    rows = ROW.findall((ROOT / "course.md").read_text())
    assert sorted(rows) == sorted(folder.id for folder in (*LESSONS, *PATH))


def test_the_product_comes_after_what_it_is_made_of():
    assert [folder.number for folder in PATH[:9]] == ["01", "02", "04", "06", "03", "07", "17", "05", "08"]


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.id)
def test_a_page_says_what_it_presumes_and_leads_to_the_next_exercise(page):
    row, lesson = row_of(page), page.lesson_file.read_text()
    presumed = {folder.number for folder in PATH if folder.number in row[2]}
    before = ROW.findall((ROOT / "course.md").read_text())
    assert presumed <= {id[:2] for id in before[: before.index(page.id)]}
    assert f"{row[3]} minutes · presumes {row[2].partition(',')[0]}" in lesson
    assert f"](../{page.next().id}/README.md)" in lesson.splitlines()[-1]


@pytest.mark.parametrize("folder", PATH, ids=lambda folder: folder.id)
def test_what_an_exercise_presumes_stands_before_it_on_the_path(folder):
    presumed = load_test_file(folder).exercise.presumes
    assert set(presumed) <= {before.id for before in PATH[: PATH.index(folder)]}
    numbers = ", ".join(id[:2] for id in presumed)
    lesson = (folder.path / "README.md").read_text().splitlines()[2]
    assert numbers in row_of(folder)[2] and numbers in lesson, (numbers, row_of(folder), lesson)
    assert f"{row_of(folder)[3]} minutes" in lesson


def test_the_sum_of_minutes_is_that_of_the_rows():
    total = sum(int(row_of(folder)[3]) for folder in (*LESSONS, *PATH))
    assert f"The sum is {total} minutes" in (ROOT / "course.md").read_text()


def test_the_next_exercise_is_that_of_the_next_row():
    assert all(before.next() == after for before, after in pairwise(PATH)) and PATH[-1].next() is None


@pytest.mark.parametrize("text", [None, "", "\x00 | [01_"], ids=["missing", "empty", "no table"])
def test_without_rows_exercises_follow_by_number(course, text):
    if text is None:
        (course.path / "course.md").unlink()
    else:
        (course.path / "course.md").write_text(text)
    numbers = [folder.number for folder in all_folders(course.path)]
    assert numbers == sorted(numbers) and len(numbers) == len(PATH)


def test_an_exercise_without_a_row_comes_last(course):
    text = (course.path / "course.md").read_text()
    (course.path / "course.md").write_text(FIRST_ROW.sub("", text))
    assert [folder.id for folder in all_folders(course.path)] == [folder.id for folder in [*PATH[1:], PATH[0]]]


def test_status_pytest_and_solution_name_the_same_next_exercise(course):
    passed = "outcome=pass passed=2026-01-02T00:00:00Z last=2026-01-02T00:00:00Z runs=1"
    (course.path / "progress.txt").write_text(f"01_masked_add  {passed}\n02_strided_blocks  {passed}\n")
    course.write("04_transpose")
    done = course.pytest("exercises/04_transpose")
    assert done.status == 0
    assert done.lines[-1].strip() == "Next: 06_fused_outer. Open exercises/06_fused_outer/README.md"
    assert course.here("solution", "04").lines[-1] == "Next: 06_fused_outer: course open 06"
    assert course.here("status").lines[-1] == "Next: 06_fused_outer. Read it with: course open 06"
    assert [line[:2] for line in course.here("status").lines[1:8]] == ["01", "02", "04", "06", "03", "07", "17"]


def test_a_clone_begins_without_progress():
    listed = ["git", "-C", str(ROOT), "ls-files", "--", "progress.txt", ".course"]
    tracked = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert tracked == ""
