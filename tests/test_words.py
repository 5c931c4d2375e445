"""The glossary: in order, and each term stands in the lesson that is named."""

from __future__ import annotations

import re

import pytest

from grader.course.folder import all_folders, all_lessons
from tests.conftest import ROOT

ROWS = re.findall(
    r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \| \[(\d\d)\]\(\.\./(exercises/\d\d_\w+/README\.md)\) \|$",
    (ROOT / "docs" / "words.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
LESSONS = {folder.number: folder for folder in [*all_lessons(ROOT), *all_folders(ROOT)]}


def test_terms_stand_once_and_in_order():
    terms = [term.casefold() for term, *_ in ROWS]
    assert len(terms) > 50 and terms == sorted(set(terms))


@pytest.mark.parametrize("term, meaning, others, number, path", ROWS, ids=[term for term, *_ in ROWS])
def test_a_term_stands_in_its_lesson(term, meaning, others, number, path):
    folder, word = LESSONS[number], re.escape(term.partition(",")[0])
    assert ROOT / path == folder.lesson_file
    text = folder.lesson_file.read_text(encoding="utf-8")
    assert re.search(rf"\b{word}s?\b", text) if term.isupper() else re.search(rf"\b{word}", text, re.IGNORECASE)


def test_each_row_is_read():
    rows = [line for line in (ROOT / "docs" / "words.md").read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    assert len(rows) == len(ROWS) + 2  # the heading, and the line below it
