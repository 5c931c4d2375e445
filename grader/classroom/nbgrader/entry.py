"""A student's work on an exercise, as nbgrader has it."""

from __future__ import annotations

from dataclasses import dataclass

from nbformat import NotebookNode

from grader.classroom.student_work import StudentWork


@dataclass(kw_only=True)
class Entry(StudentWork):
    """A student's work, with the assignment and the released notebook, which nbgrader needs."""

    assignment: str
    released: NotebookNode
