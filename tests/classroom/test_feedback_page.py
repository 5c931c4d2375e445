"""The page for a student of a class without nbgrader."""

from __future__ import annotations

import pytest

from grader.classroom.handin import HandIn
from grader.classroom.nbgrader.cell_outputs import report_outputs
from grader.classroom.plain_folder.feedback import feedback_page
from grader.classroom.result_store import Text, faulty
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from tests.classroom.instructor import ROOT

ADD = Folder(ROOT / "exercises/01_masked_add")
CASES = [
    {"name": "test_one_block", "item": "right", "hidden": False, "outcome": "pass", "id": "", "points": 3,
     "message": ""},
    {"name": "a narrow one", "item": "hidden", "hidden": True, "outcome": "fail", "id": "x", "points": 1,
     "message": "of shape [409, 3]"},
    {"name": "test_fast", "item": "speed", "hidden": False, "outcome": "skipped", "id": "", "points": 2,
     "message": "no GPU"},
]  # fmt: skip


def work(content: str | None, result: dict | None = None, **hand_in) -> StudentWork:
    text = None if content is None else Text(ADD, content, None)
    return StudentWork(student="ada <b>", exercise=ADD.id, hand_in=HandIn(content, **hand_in), text=text, result=result)


def result(**more) -> dict:
    return {"exercise": ADD.id, "tests": CASES, "outcome": "fail", "fault": None, "message": "", "report": "wrong <i>",
            **more}  # fmt: skip


def test_a_page_has_points_report_and_file_and_nothing_of_a_hidden_case():
    page = feedback_page(work("x = 1  # <script>\n", result(), notes=["softmax-1.py was not judged."]))
    assert "<h1>01 masked_add: 3 of 6 points, 2 not decided yet</h1>" in page
    for told in ("wrong &lt;i&gt;", "a narrow one  (1)", "Not decided yet: no GPU.", "softmax-1.py was not judged.",
                 "x = 1  # &lt;script&gt;", "ada &lt;b&gt;"):  # fmt: skip
        assert told in page
    assert "409" not in page and "<script" not in page and "http" not in page.replace("http-equiv", "")


def test_a_page_has_one_number_of_points():
    """The judge's report counts what this machine could judge, and the class what counts in it."""
    report = (
        "  z is wrong.\n\n  0 of 20 points. 16 tests failed; one cause often explains several.\n  Next: edit add.py"
    )
    page = feedback_page(work("x", result(report=report)))
    assert "3 of 6 points" in page and "0 of 20" not in page
    assert "  z is wrong.\n\n  16 tests failed; one cause often explains several.\n  Next: edit add.py" in page
    told, *_ = report_outputs(result(report="  z is wrong.\n\n  0 of 20 points.\n  Next: edit add.py", tiles=None), [])
    assert told["text"] == "  z is wrong.\n\n  Next: edit add.py\n"


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (work(None, problem="softmax.py is a link; hand in the file itself"), "is a link; hand in the file itself"),
        (work("x", faulty(ADD.id, "the disk of host-7 is full")), "It could not be judged yet: no fault of yours."),
    ],
    ids=["the student's", "the machine's"],
)
def test_what_is_not_graded_says_why_and_keeps_the_machines_faults(one, told):
    page = feedback_page(one)
    assert ": not graded</h1>" in page and told in page and "host-7" not in page


def test_who_handed_in_nothing_has_no_page():
    assert feedback_page(work(None, absent=True)) == ""
