"""The place of a call that was stopped: its line, and the loop around it."""

from __future__ import annotations

import pytest

from grader.explain.out_of_time import out_of_time
from grader.processes.faults import ChildEnded
from grader.processes.where import Where
from grader.submission.text import read_submission

TEXT = """\
def entry(x):
    while x:
        for i in range(3):
            x = x
        else:
            x = 2
    x = 10 ** 10 ** 9
"""
IN_HELPER = """\
for i in range(2):
    def helper(x):
        return x
"""


@pytest.mark.parametrize(
    ("text", "line", "shown", "place"),
    [
        (TEXT, 4, 3, "it was in line 4, in the loop that begins in line 3."),
        (TEXT, 3, 3, "it was in the loop that begins in line 3."),
        (TEXT, 6, 2, "it was in line 6, in the loop that begins in line 2."),
        (TEXT, 7, 7, "it was in line 7."),
        (IN_HELPER, 3, 3, "it was in line 3."),
        (TEXT, 0, 0, "does every loop reach its end?"),
    ],
)
def test_the_innermost_loop_of_the_function_is_named(tmp_path, text, line, shown, place):
    file = tmp_path / "entry.py"
    file.write_text(text)
    stopped = ChildEnded("time", "8 s", Where(line))
    verdict = out_of_time("entry", "ended", stopped, at_import=False, submission=read_submission(file))
    assert verdict.lines[0] == f"entry was stopped after 8 s: {place}" and verdict.line == shown
