"""The page that a student may be given: points, the judge's report, and the file as it was judged.

Of a hidden case it has the name and the outcome, as the report does.
"""

from __future__ import annotations

import base64
from pathlib import Path

from grader.classroom import student_work
from grader.classroom.rubric import TITLES, as_heading, report_of
from grader.classroom.student_work import StudentWork
from grader.learn.notebooks.cells import picture_of
from grader.show.html_page import rendered

TEMPLATE = Path(student_work.__file__).with_name("templates") / "feedback.html"


def feedback_page(one: StudentWork) -> str:
    """Returns the page as HTML; "" where nothing came that could be told."""
    if one.hand_in.absent:
        return ""
    judged = one.judged
    items = judged.items.values() if judged else ()
    problem = one.hand_in.problem or ("It could not be judged yet: no fault of yours." if one.fault else "")
    return rendered(
        TEMPLATE,
        title=one.exercise.replace("_", " ", 1),
        student=one.student,
        reached=_reached(one),
        notes=[note for note in (*one.hand_in.notes, problem) if note],
        report=report_of(judged.result) if judged else "",
        picture=base64.b64encode(picture_of(judged.result).encode()).decode() if judged else "",
        items=[(item, as_heading(TITLES[item.name])) for item in items],
        lines=one.text.text.splitlines() if one.text and judged else [],
    )


def _reached(one: StudentWork) -> str:
    if one.judged is None:
        return "not graded"
    told = f"{one.judged.points:g} of {one.judged.possible:g} points"
    return f"{told}, {one.judged.open_points:g} not decided yet" if one.open else told
