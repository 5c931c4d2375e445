"""What a kernel's text is made of: the lines of the functions that it reaches, and all that no function holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.submission.text import lines_reached, submission_of

TEXT = """\
BLOCK = 64
def inner(x): return x + BLOCK
@jit
def add(x): return inner(x)
@jit
def first(x): add(x)
@jit
def second(x): pass
also = inner
def entry(x):
    first(x)
    second(x)
"""
LINES = TEXT.splitlines()


@pytest.mark.parametrize(
    ("named", "empty"),
    [
        ("'first'", (7, 8, 10, 11, 12)),
        ("'second'", (3, 4, 5, 6, 10, 11, 12)),
        ("first, a constant: second", (10, 11, 12)),
    ],
)
def test_functions_that_nothing_reaches_are_empty_lines(named, empty):
    kept = lines_reached(submission_of(Path("submission.py"), TEXT.encode()), named)
    assert kept == (*("" if number in empty else line for number, line in enumerate(LINES, 1)), "")


def test_of_two_functions_of_one_name_both_are_kept():
    text = "def f(): return g()\ndef g(): pass\ndef f(): return h()\ndef h(): pass\ndef i(): pass\n"
    kept = lines_reached(submission_of(Path("submission.py"), text.encode()), "f")
    assert kept == (*text.splitlines()[:4], "", "")


def test_a_file_that_is_no_python_is_kept_whole():
    assert lines_reached(submission_of(Path("submission.py"), b"def f(:\n"), "g") == ("def f(:", "")
