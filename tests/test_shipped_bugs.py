"""docs/shipped_bugs.md: each row has a thread and exercises that exist, and names are those of the judge."""

from __future__ import annotations

import re

from grader.course.folder import all_folders
from grader.site.failure_pages import failures_of
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "shipped_bugs.md").read_text(encoding="utf-8")
ROWS = [row.strip("| ").split(" | ") for row in PAGE.splitlines() if row.startswith("| ") and "https://" in row]
THREAD = r"\[(\d+)\]\(https://github\.com/[\w-]+/[\w-]+/issues/\1\)"
EXERCISE = re.compile(r"\[(\d\d)\]\(\.\./exercises/(\w+)/README\.md\)")


def test_each_row_has_threads_of_its_own_and_says_when():
    assert len(ROWS) == 34
    assert [
        row for row in ROWS if not re.fullmatch(rf"{THREAD}(?:, {THREAD.replace('1', '2')})?, 202\d-\d\d", row[2])
    ] == []
    links = re.findall(r"https://[^)]+", PAGE)
    assert len(set(links)) == len(links)


def test_each_exercise_that_a_row_names_exists_and_what_none_teaches_stands_apart():
    known = {folder.number: folder.id for folder in all_folders(ROOT)}
    taught = [row for row in ROWS if len(row) == 4]
    assert all(known[number] == id for row in taught for number, id in EXERCISE.findall(row[3]))
    assert [row for row in taught if not re.fullmatch(rf"{EXERCISE.pattern}(?:, .*)?", row[3])] == []
    apart = PAGE.partition("## What no exercise teaches yet")[2]
    assert [row[0] for row in ROWS if len(row) == 3 and row[1] not in apart] == []


def test_failures_are_called_as_the_judge_calls_them():
    named = set(re.findall(r"`(?:course explain )?([a-z-]+)`", PAGE))
    assert named <= {page.id for page in failures_of(all_folders(ROOT))} and "offset-overflow" in named
