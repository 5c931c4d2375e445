"""The files that `course grade SUBMISSIONS --out RESULTS` writes: a JSON per submission, tables, exports.

students/STUDENT/03_softmax.json     the judge's result, with student, exercise, status and note
summary.csv, items.csv               a row per student and exercise; a row per item of it
exports/canvas.csv, moodle.csv       a row per student, a column per exercise
exports/gradescope/, exports/junit/  a file per student and exercise
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from grader.classroom.json_text import json_text
from grader.classroom.per_test import gradescope_text, junit_text
from grader.classroom.rubric import Item, items_of
from grader.classroom.student_work import GRADED, StudentWork
from grader.classroom.tables import canvas_rows, csv_of
from grader.explain.verdict import NOT_ATTEMPTED
from grader.files import remove_unfinished, write_whole

ID = "[0-9][0-9]_*"  # of any exercise
# The folders that hold a folder per student, and how the paths of our files in the student's folder look.
OF_STUDENTS = {"students": f"{ID}.json", "exports/gradescope": f"{ID}/results.json", "exports/junit": f"{ID}.xml"}
WRITERS = 8  # threads: thousands of small files, and each has to reach the disk or a share


def write_output(graded: list[StudentWork], students: Collection[str], out: Path) -> None:
    """Writes the files that differ from what `out` holds.

    Removes all files of an absent hand-in, and the Gradescope and JUnit files of a hand-in with no result or a fault.
    `students`: all who are among the submissions; an earlier run's files of others are removed.
    """
    remove_unfinished(out)
    for folder, files in OF_STUDENTS.items():
        _remove_others(out / folder, files, students)
    with ThreadPoolExecutor(WRITERS) as threads:
        for _ in threads.map(_write_work, graded, repeat(out)):
            pass  # raises what a thread met
    _write(out / "summary.csv", csv_of(_summary(graded)))
    _write(out / "items.csv", csv_of(_items(graded)))
    _write(out / "exports/canvas.csv", csv_of(_canvas(graded)))
    _write(out / "exports/moodle.csv", csv_of(_moodle(graded)))


def _remove_others(folder: Path, files: str, students: Collection[str]) -> None:
    """Removes our files of students who are gone from the submissions, and the folders that this empties.

    Other files stay: a person has put them there.
    """
    for gone in [path for path in folder.glob("*") if path.name not in students and not path.is_symlink()]:
        for path in gone.glob(files):
            path.unlink(missing_ok=True)
        for inner in [*gone.glob("*"), gone]:
            with contextlib.suppress(OSError):  # it is not empty, or no folder
                inner.rmdir()


def _write_work(one: StudentWork, out: Path) -> None:
    _write(out / "students" / one.student / f"{one.exercise}.json", _result_text(one))
    _write(out / "exports/gradescope" / one.student / one.exercise / "results.json", _gradescope_text(one))
    _write(out / "exports/junit" / one.student / f"{one.exercise}.xml", _junit_text(one))


def _write(path: Path, text: str) -> None:
    """Writes a text to a file that does not hold it yet; removes the file for ""."""
    if not text:
        path.unlink(missing_ok=True)
    elif not path.exists() or path.read_bytes() != text.encode("utf-8", "surrogateescape"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


def _result_text(one: StudentWork) -> str:
    if one.hand_in.absent:
        return ""
    facts = {"student": one.student, "exercise": one.exercise, "status": one.status, "note": one.note}
    text = f"texts/{one.exercise}/{one.text.key}.py" if one.text else None
    return json_text({**facts, "text": text, **(one.result or {})})


def _gradescope_text(one: StudentWork) -> str:
    return gradescope_text([_counted(one)], one.note, score(one)) if one.result and not one.fault else ""


def _junit_text(one: StudentWork) -> str:
    return junit_text([_counted(one)]) if one.result and not one.fault else ""


def items(one: StudentWork) -> dict[str, Item]:
    """Returns a submission's items by name; {} where it has no result."""
    return items_of(one.result, one.without) if one.tests else {}


def score(one: StudentWork) -> float | None:
    """Returns the points that count; None unless all tests are decided."""
    return one.points if one.status == GRADED else None


def _summary(graded: list[StudentWork]) -> Iterator[list]:
    yield ["student", "exercise", "status", "score", "max_score", "reached", "judged", "first_failure", "note"]
    possible = _possible(graded)
    for one in graded:
        parts = items(one).values()
        reached = sum(item.reached for item in parts) if parts else None
        judged = sum(item.judged for item in parts) if parts else None
        first = _first_failure(one.result) if parts else ""
        points = [score(one), possible.get(one.exercise), reached, judged]
        yield [one.student, one.exercise, one.status, *points, first, one.note]


def _first_failure(result: dict) -> str:
    return NOT_ATTEMPTED if result["outcome"] == NOT_ATTEMPTED else result["message"].partition("\n")[0]


def _possible(graded: list[StudentWork]) -> dict[str, float]:
    """Returns the most points of each exercise that was judged, by its id."""
    return {one.exercise: one.possible for one in graded if one.tests}


def _items(graded: list[StudentWork]) -> Iterator[list]:
    yield ["student", "exercise", "item", "score", "max_score"]
    for one in graded:
        for item in items(one).values():
            yield [one.student, one.exercise, item.name, item.score, item.possible]


def _canvas(graded: list[StudentWork]) -> Iterator[list]:
    """Yields the rows of Canvas' gradebook import; the name of a student's folder stands for name, id and login."""
    exercises, scores = _by_student(graded)
    possible = _possible(graded)
    rows = (([student, "", student, student], list(map(row.get, exercises))) for student, row in scores.items())
    return canvas_rows({exercise: possible.get(exercise) for exercise in exercises}, rows)


def _moodle(graded: list[StudentWork]) -> Iterator[list]:
    """Yields the rows of Moodle's grade import; the name of a student's folder stands for the ID number."""
    exercises, scores = _by_student(graded)
    yield ["ID number", *exercises]
    for student, row in scores.items():
        yield [student, *(row.get(exercise) for exercise in exercises)]


def _by_student(graded: list[StudentWork]) -> tuple[list[str], dict[str, dict[str, float | None]]]:
    scores: dict[str, dict[str, float | None]] = {}
    for one in graded:
        scores.setdefault(one.student, {})[one.exercise] = score(one)
    return sorted({one.exercise for one in graded}), scores


def _counted(one: StudentWork) -> dict:
    """Returns the result with only the tests that count."""
    return {**one.result, "tests": one.tests}
