"""The files that `course grade SUBMISSIONS --out RESULTS` writes: a JSON per submission, tables, exports.

students/STUDENT/03_softmax.json     the judge's result, with student, exercise, status and note
feedback/STUDENT/03_softmax.html     what the student may see of it
summary.csv, items.csv, totals.csv   a row per student and exercise; per item of it; per student
exports/canvas.csv, moodle.csv       a row per student, a column per exercise
exports/gradescope/, exports/junit/  a file per student and exercise
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

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
from grader.classroom.json_text import json_text
from grader.classroom.names import Person
from grader.classroom.plain_folder.feedback import feedback_page
from grader.classroom.student_work import Judged, StudentWork
from grader.explain.verdict import NOT_ATTEMPTED
from grader.files import remove_unfinished

# The folders that hold a folder per student, and how the paths of our files in the student's folder look.
OF_STUDENTS = {
    "students": "{id}.json",
    "feedback": "{id}.html",
    "exports/gradescope": "{id}/results.json",
    "exports/junit": "{id}.xml",
}
WRITERS = 8  # threads: thousands of small files, and each has to reach the disk or a share


def write_output(
    graded: list[StudentWork], people: Mapping[str, Person], possible: Mapping[str, float], out: Path
) -> None:
    """Writes the files that differ from what `out` holds.

    Removes all files of an absent hand-in, and the Gradescope and JUnit files of a hand-in with no result or a fault.
    `people`: all students of the class by their ids; of the exercises that this run shows, an earlier run's files of
    other students are removed. `possible`: the most points of each exercise, by its id.
    """
    remove_unfinished(out)
    for folder, files in OF_STUDENTS.items():
        for id in {one.exercise for one in graded}:
            _remove_others(out / folder, files.format(id=id), people)
    with ThreadPoolExecutor(WRITERS) as threads:
        for _ in threads.map(_write_work, graded, repeat(out)):
            pass  # raises what a thread met
    exercises = sorted({one.exercise for one in graded})
    scores = _scores(graded, exercises, people)
    write_changed(out / "summary.csv", csv_of(_summary(graded, possible), for_people=True))
    write_changed(out / "items.csv", csv_of(_items(graded), for_people=True))
    by_exercise = {exercise: possible.get(exercise) for exercise in exercises}
    write_changed(out / "totals.csv", csv_of(totals_rows(by_exercise, scores), for_people=True))
    write_changed(out / "exports/canvas.csv", csv_of(canvas_rows(by_exercise, scores)))
    write_changed(
        out / "exports/moodle.csv", csv_of(moodle_rows(exercises, scores, emails=any(one.email for one in scores)))
    )


def _remove_others(folder: Path, files: str, students: Mapping[str, Person]) -> None:
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
    write_changed(out / "students" / one.student / f"{one.exercise}.json", _result_text(one))
    write_changed(out / "feedback" / one.student / f"{one.exercise}.html", feedback_page(one))
    write_changed(out / "exports/gradescope" / one.student / one.exercise / "results.json", _gradescope_text(one))
    write_changed(out / "exports/junit" / one.student / f"{one.exercise}.xml", _junit_text(one))


def _result_text(one: StudentWork) -> str:
    if one.hand_in.absent:
        return ""
    facts = {"student": one.student, "exercise": one.exercise, "status": one.status, "note": one.note}
    text = f"texts/{one.exercise}/{one.text.key}.py" if one.text else None
    return json_text({**facts, "text": text, **(one.result or {})})


def _gradescope_text(one: StudentWork) -> str:
    return gradescope_text([one.judged.counted], one.note, one.score) if one.judged else ""


def _junit_text(one: StudentWork) -> str:
    return junit_text([one.judged.counted]) if one.judged else ""


def _summary(graded: list[StudentWork], possible: Mapping[str, float]) -> Iterator[list]:
    yield ["student", "exercise", "status", "score", "max_score", "reached", "judged", "first_failure", "note"]
    for one in graded:
        reached, judged, first = _reached(one.judged) if one.judged and one.judged.tests else (None, None, "")
        points = [one.score, possible.get(one.exercise), reached, judged]
        yield [one.student, one.exercise, one.status, *points, first, one.note]


def _reached(judged: Judged) -> tuple[float, float, str]:
    """Returns the points reached, the points that they are out of, and the first failure; "" where all is right."""
    items, result = judged.items.values(), judged.result
    first = NOT_ATTEMPTED if result["outcome"] == NOT_ATTEMPTED else result["message"].partition("\n")[0]
    return sum(item.reached for item in items), sum(item.judged for item in items), first


def _items(graded: list[StudentWork]) -> Iterator[list]:
    yield ["student", "exercise", "item", "score", "max_score"]
    for one in graded:
        for item in one.judged.items.values() if one.judged else ():
            yield [one.student, one.exercise, item.name, item.score, item.possible]


def _scores(graded: list[StudentWork], exercises: list[str], people: Mapping[str, Person]) -> list[Scores]:
    """Returns each student's scores by exercise; the student's id stands for a name, an address that is not known."""
    by_student: dict[str, dict[str, float | None]] = {}
    for one in graded:
        by_student.setdefault(one.student, {})[one.exercise] = one.score
    return [_of(people[id], list(map(row.get, exercises))) for id, row in by_student.items()]


def _of(person: Person, scores: list[float | None]) -> Scores:
    name = f"{person.last or person.id}, {person.first}".rstrip(", ")
    return Scores(name, person.platform_id, person.id, person.email or person.id, scores, person.email)
