"""`course mend` tells what to change in the line of the last failure, once all hints are open."""

from __future__ import annotations

import pytest

from grader.course.folder import Folder
from grader.progress.last_result import last_result
from tests.judging.test_mended_calls import COPY, HEAD, changed

ID = "02_strided_blocks"


@pytest.fixture
def wrong(course):
    """A copy of the course with a mistake in its file that no list holds, judged once."""
    course.save(ID, HEAD + changed(COPY, ("cols < N", "cols != N")))
    said = course.pytest(f"exercises/{ID}", "--device", "cpu", "--seed", "1", "--result", "result.json").out
    assert "comes out right." in said and "in the place of" not in said
    return course


def test_the_change_is_told_after_the_last_hint(wrong):
    closed = wrong.here("mend", "02")
    assert (closed.status, closed.out) == (1, "")
    assert closed.err.strip().endswith("is told after its last hint, hint 3. Next: course hint 02")
    hints = wrong.here("hint", "02", "--all", answer="y\n")
    assert "That was the last hint; course mend 02 tells the change that mends your last run;" in hints.lines[-1]
    done = wrong.here("mend", "02")
    assert done.status == 0
    line, change, after = done.lines
    assert line == "Line 11:  inside = (rows < M) & (cols != N)"
    assert change.startswith("With `cols < N` in the place of `cols != N` in line 11, every wrong call that was tried ")
    assert after == f"Next: edit exercises/{ID}/strided_blocks.py and run pytest exercises/{ID}"


def test_the_change_stands_in_no_result_that_is_handed_on(wrong):
    """A class's results come from --result, and students read them."""
    assert "in the place of" in str(last_result(Folder(wrong.path / "exercises" / ID)))
    assert "in the place of" not in (wrong.path / "result.json").read_text()


def test_where_no_change_was_found_that_is_said(course):
    """Two mistakes at once: neither mended alone makes a call right."""
    copy = changed(COPY, ("cols < N", "cols != N"), ("rows < M", "rows != M"))
    course.save(ID, HEAD + copy)
    assert "comes out right" not in course.pytest(f"exercises/{ID}", "--device", "cpu", "--seed", "1").out
    assert "course mend" not in course.here("hint", "02", "--all", answer="y\n").out
    done = course.here("mend", "02")
    assert (done.status, done.out) == (1, "")
    assert "knows no single change" in done.err and "Next: course why 02" in done.err


@pytest.mark.parametrize(("number", "said"), [("01", "passed when it was run last"), ("06", "was not run here yet")])
def test_what_did_not_fail_has_nothing_to_mend(history, number, said):
    done = history.here("mend", number)
    assert (done.status, done.out) == (1, "")
    assert said in done.err and "Next: " in done.err
