"""The glossary: in order, and each term stands in the lesson that is named."""

from __future__ import annotations

import re

import pytest

from grader.course.folder import all_folders, all_lessons
from tests.conftest import ROOT

ROWS = re.findall(
    r"^\| ([^|]+?) \| ([^|]+?) \| \[(\d\d)\]\(\.\./(exercises/\d\d_\w+/README\.md)\) \|$",
    (ROOT / "docs" / "words.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
LESSONS = {folder.number: folder for folder in [*all_lessons(ROOT), *all_folders(ROOT)]}


def test_terms_stand_once_and_in_order():
    terms = [term.casefold() for term, *_ in ROWS]
    assert len(terms) > 50 and terms == sorted(set(terms))


@pytest.mark.parametrize("term, meaning, number, path", ROWS, ids=[term for term, *_ in ROWS])
def test_a_term_stands_in_its_lesson(term, meaning, number, path):
    folder = LESSONS[number]
    assert ROOT / path == folder.lesson_file
    assert term.partition(",")[0].casefold() in folder.lesson_file.read_text(encoding="utf-8").casefold()
