"""The parts of nbgrader's objects that this course uses, as types: nbgrader declares none."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class CourseDirectory(Protocol):
    """The paths of a class, as nbgrader_config.py and the command line set them.

    The three ids say what nbgrader's next converter works on; "*" stands for all.
    """

    root: str
    course_id: str
    db_url: str
    release_directory: str
    source_directory: str
    submitted_directory: str
    autograded_directory: str
    feedback_directory: str
    assignment_id: str
    student_id: str
    notebook_id: str

    def format_path(self, nbgrader_step: str, student_id: str, assignment_id: str) -> str: ...


class Grade(Protocol):
    """An item of a hand-in. A person's score, where there is one, counts instead of the judge's."""

    name: str
    score: float
    max_score: float
    auto_score: float | None
    manual_score: float | None


class SubmittedNotebook(Protocol):
    name: str
    grades: list[Grade]


class NbSubmission(Protocol):
    """A hand-in of an assignment. `duedate`: with an extension that the student has."""

    duedate: datetime | None
    timestamp: datetime | None
    late_submission_penalty: float | None
    notebooks: list[SubmittedNotebook]


class Assignment(Protocol):
    name: str
    duedate: datetime | None
    notebooks: list[object]
    max_score: float


class Student(Protocol):
    """A student of the roster. `lms_user_id`: the number on the learning platform."""

    id: str
    first_name: str | None
    last_name: str | None
    email: str | None
    lms_user_id: str | None


class Gradebook(Protocol):
    """`find_submission` raises nbgrader.api.MissingEntry where a student handed nothing in."""

    assignments: list[Assignment]
    students: list[Student]

    def find_submission(self, assignment: str, student: str) -> NbSubmission: ...
