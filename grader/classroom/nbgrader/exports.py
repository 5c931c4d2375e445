"""Exports of the gradebook, as nbgrader's exporter plugins. The score of ungraded work is blank, never 0.

    nbgrader export                                                         grades.csv: one row per hand-in
    nbgrader export --exporter=grader.classroom.nbgrader.exports.Items      items.csv: one row per item
    nbgrader export --exporter=grader.classroom.nbgrader.exports.Totals     totals.csv: one row per student
    nbgrader export --exporter=grader.classroom.nbgrader.exports.Canvas     canvas.csv
    nbgrader export --exporter=grader.classroom.nbgrader.exports.Moodle     moodle.csv
    nbgrader export --exporter=grader.classroom.nbgrader.exports.Gradescope gradescope/ASSIGNMENT/STUDENT/results.json
    nbgrader export --exporter=grader.classroom.nbgrader.exports.JUnit      junit/ASSIGNMENT/STUDENT.xml

nbgrader's --to, --assignment and --student work with all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import nbformat
from nbgrader.api import MissingEntry
from nbgrader.plugins import ExportPlugin

from grader.classroom.export_formats import (
    Scores,
    canvas_rows,
    csv_of,
    gradescope_text,
    junit_text,
    moodle_rows,
    totals_rows,
    write_changed,
)
from grader.classroom.handin import solution_text
from grader.classroom.nbgrader.bridge import hidden_cases, without
from grader.classroom.nbgrader.nbgrader_types import Assignment, Grade, Gradebook, NbSubmission, Student
from grader.classroom.result_store import Results, Text
from grader.classroom.rubric import counted, is_decided, medals_of
from grader.classroom.student_work import GRADED, MISSING, NOT_GRADED, PARTLY
from grader.course.folder import Folder
from grader.explain.verdict import PASS
from grader.sentences import joined


@dataclass
class HandedIn:
    """A student's hand-in of an assignment, as the gradebook has it; `submission` is None where there is none."""

    assignment: Assignment
    student: Student
    submission: NbSubmission | None

    @property
    def grades(self) -> list[Grade]:
        return [] if self.submission is None else [g for n in self.submission.notebooks for g in n.grades]

    @property
    def status(self) -> str:
        if self.submission is None:
            return MISSING
        scored = [_is_scored(grade) for grade in self.grades]
        return GRADED if all(scored) else PARTLY if any(scored) else NOT_GRADED

    @property
    def reached(self) -> float:
        """The points reached in the items decided so far, before a late penalty."""
        return sum(grade.score for grade in self.grades if _is_scored(grade))

    @property
    def judged(self) -> float:
        """The most points that the items decided so far could give."""
        return sum(grade.max_score for grade in self.grades if _is_scored(grade))

    @property
    def penalty(self) -> float:
        return (self.submission.late_submission_penalty or 0.0) if self.submission is not None else 0.0

    @property
    def due(self) -> datetime | None:
        """When the hand-in was due, with an extension that the student has."""
        return self.submission.duedate if self.submission and self.assignment.duedate else self.assignment.duedate

    @property
    def hours_late(self) -> float | None:
        """By how much the hand-in is late; None where nobody knows when it came, or when it was due."""
        if self.submission is None or self.submission.timestamp is None or self.due is None:
            return None
        return round(max(0.0, (self.submission.timestamp - self.due).total_seconds()) / 3600, 2)

    @property
    def score(self) -> float | None:
        """The score that counts, after the late penalty; None unless every item is graded."""
        return round(max(0.0, self.reached - self.penalty), 2) if self.status == GRADED else None


class Exporter(ExportPlugin):
    """The base of our exporters: knows the class's folder, and which hand-ins the command line selects."""

    @property
    def here(self) -> Path:
        return Path(self.parent.coursedir.root)

    def assignments(self, gradebook: Gradebook) -> list[Assignment]:
        return [each for each in gradebook.assignments if not self.assignment or each.name in self.assignment]

    def students(self, gradebook: Gradebook) -> list[Student]:
        return [each for each in gradebook.students if not self.student or each.id in self.student]

    def handed_in(self, gradebook: Gradebook, assignment: Assignment, student: Student) -> HandedIn:
        try:
            return HandedIn(assignment, student, gradebook.find_submission(assignment.name, student.id))
        except MissingEntry:
            return HandedIn(assignment, student, None)

    def everything(self, gradebook: Gradebook) -> Iterator[HandedIn]:
        for assignment in self.assignments(gradebook):
            for student in self.students(gradebook):
                yield self.handed_in(gradebook, assignment, student)

    def scores(self, gradebook: Gradebook) -> Iterator[Scores]:
        """Yields each student's scores, a score per assignment."""
        assignments = self.assignments(gradebook)
        for who in self.students(gradebook):
            name = f"{who.last_name or who.id}, {who.first_name or ''}".rstrip(", ")
            scores = [self.handed_in(gradebook, each, who).score for each in assignments]
            yield Scores(name, who.lms_user_id, who.id, who.email or who.id, scores, who.email)

    def facts(self, handed_in: HandedIn) -> Iterator[dict]:
        """Yields for each judged notebook of a hand-in what `course grade` noted in it, its "name", and "result".

        "result" is the judge's result with only the tests that count; it may be None.
        """
        coursedir = self.parent.coursedir
        student, assignment = handed_in.student.id, handed_in.assignment.name
        folder = Path(coursedir.format_path(coursedir.autograded_directory, student, assignment))
        for path in sorted(folder.glob("*.ipynb")):
            notebook = nbformat.read(path, as_version=4)
            facts = dict(notebook.metadata.get("course", {}))
            if "verdict" not in facts:
                continue
            exercise = Folder(Path(self.parent.config.PutInVerdict.course, "exercises", facts["exercise"]))
            text = Text(exercise, solution_text(notebook), hidden_cases(self.here))
            result = None if facts["problem"] else Results(self.here / "results").find(text)
            if result:
                result = {**result, "tests": counted(result, without(notebook))}
            yield {**facts, "name": path.stem, "result": result}


class Table(Exporter):
    """Writes `rows(gradebook)` as CSV with every text quoted. `for_people`: not for another program's import."""

    for_people = True

    def export(self, gradebook: Gradebook) -> None:
        path = Path(self.to or f"{type(self).__name__.lower()}.csv")
        path.write_text(csv_of(self.rows(gradebook), self.for_people), encoding="utf-8", newline="")
        self.log.info("%s is written", path)

    def rows(self, gradebook: Gradebook) -> Iterator[list]:
        raise NotImplementedError


class Grades(Table):
    """A row per assignment and student, with the status of the work, which a bare number cannot show."""

    def rows(self, gradebook: Gradebook) -> Iterator[list]:
        yield ["assignment", "student_id", "last_name", "first_name", "email", "timestamp", "duedate", "hours_late",
               "status", "score", "max_score", "reached", "judged", "late_penalty", "core", "full", "medals",
               "note"]  # fmt: skip
        for each in self.everything(gradebook):
            student = each.student
            time = str(each.submission.timestamp or "") if each.submission is not None else ""
            who = [student.id, student.last_name, student.first_name, student.email]
            decided = [each.reached, each.judged] if each.status in (GRADED, PARTLY) else ["", ""]
            points = [each.score, each.assignment.max_score, *decided, each.penalty]
            facts = list(self.facts(each))
            notes = [text for one in facts for text in _notes(one)]
            notes += [overruled(grade) for grade in each.grades if (grade.manual_score or 0) < (grade.auto_score or 0)
                      and grade.manual_score is not None]  # fmt: skip
            note = joined(notes or (["nothing was handed in"] if each.status == MISSING else []))
            levels = _levels(facts, len(each.assignment.notebooks))
            when = [time, str(each.due or ""), each.hours_late]
            yield [each.assignment.name, *who, *when, each.status, *points, *levels, _medals(facts), note]


class Totals(Table):
    """A row per student: a column per assignment, their sum, and how many are not graded."""

    def rows(self, gradebook: Gradebook) -> Iterator[list]:
        possible = {each.name: each.max_score for each in self.assignments(gradebook)}
        return totals_rows(possible, self.scores(gradebook))


class Items(Table):
    """A row per item, for statistics of a class."""

    def rows(self, gradebook: Gradebook) -> Iterator[list]:
        yield ["assignment", "student_id", "exercise", "item", "judged", "override", "max_score"]
        for each in self.everything(gradebook):
            for notebook in each.submission.notebooks if each.submission is not None else []:
                for grade in notebook.grades:
                    scores = [grade.auto_score, grade.manual_score, grade.max_score]
                    yield [each.assignment.name, each.student.id, notebook.name, grade.name, *scores]


class Canvas(Table):
    """Canvas' gradebook import: a column per assignment."""

    for_people = False

    def rows(self, gradebook: Gradebook) -> Iterator[list]:
        possible = {each.name: each.max_score for each in self.assignments(gradebook)}
        return canvas_rows(possible, self.scores(gradebook))


class Moodle(Table):
    """Moodle's grade import: a column per assignment."""

    for_people = False

    def rows(self, gradebook: Gradebook) -> Iterator[list]:
        columns = [each.name for each in self.assignments(gradebook)]
        return moodle_rows(columns, self.scores(gradebook), emails=True)


class Gradescope(Exporter):
    """Gradescope's results.json for each hand-in that has judged tests: an entry per test."""

    def export(self, gradebook: Gradebook) -> None:
        root = Path(self.to or "gradescope")
        for each in self.everything(gradebook):
            facts = list(self.facts(each))
            results = [one["result"] for one in facts if one["result"]]
            if any(result["tests"] for result in results):
                path = root / each.assignment.name / each.student.id / "results.json"
                output = "\n".join(text for one in facts for text in _notes(one))
                write_changed(path, gradescope_text(results, output, each.score))
        self.log.info("%s is written", root)


class JUnit(Exporter):
    """A JUnit XML file per hand-in: a suite per exercise, a case per test."""

    def export(self, gradebook: Gradebook) -> None:
        root = Path(self.to or "junit")
        for each in self.everything(gradebook):
            results = [facts["result"] for facts in self.facts(each) if facts["result"]]
            if results:
                path = root / each.assignment.name / f"{each.student.id}.xml"
                write_changed(path, junit_text(results))
        self.log.info("%s is written", root)


def overruled(grade: Grade) -> str:
    """Returns what is to be said of an item that a person has given less than the judge gives by now."""
    return f"{grade.name} has {grade.manual_score:g} by hand, and {grade.auto_score:g} by the judge"


def _levels(facts: list[dict], notebooks: int) -> list[str]:
    """Returns how many exercises of a hand-in pass their core, and how many pass in full, each as "1 of 2".

    Both are "" where no exercise is judged. `notebooks`: how many exercises the assignment has.
    """
    results = [one["result"] for one in facts if one["result"] and not one["result"]["fault"]]
    decided = [[test["outcome"] for test in result["tests"] if is_decided(test)] for result in results]
    full = [bool(outcomes) and all(outcome == PASS for outcome in outcomes) for outcomes in decided]
    core = [everything or result.get("core", False) for everything, result in zip(full, results)]
    return [f"{sum(level)} of {notebooks}" if results else "" for level in (core, full)]


def _medals(facts: list[dict]) -> str:
    """Returns a hand-in's medals: "gold", or "1 gold, 2 silver" for several exercises; "" where no GPU gave any."""
    told = medals_of(one["result"] for one in facts if one["result"])
    return told[0][1] if len(facts) == 1 and told else ", ".join(f"{count} {name}" for count, name in told)


def _is_scored(grade: Grade) -> bool:
    return grade.auto_score is not None or grade.manual_score is not None


def _notes(facts: dict) -> list[str]:
    fault = facts["result"]["fault"] if facts["result"] else ""
    texts = [*facts["notes"], facts["problem"], fault]
    return [f"{facts['name']}: {text}" for text in texts if text]
