"""`course grade SUBMISSIONS --out RESULTS`: a folder of submissions judged without nbgrader's gradebook.

Each step looks at what is there and does only what is missing; a run may be killed anywhere and started again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

from grader.classroom.class_report import write_report
from grader.classroom.judge_missing import How, Say, Students, check_isolation, judge_missing
from grader.classroom.names import Person
from grader.classroom.patience import patiently
from grader.classroom.plain_folder.result_files import write_output
from grader.classroom.plain_folder.submissions import Submissions, read_submissions
from grader.classroom.result_store import Results
from grader.classroom.rubric import SPEED, RubricError, points_of
from grader.classroom.student_work import GRADED, MISSING, NOT_GRADED, PARTLY, StudentWork
from grader.course.folder import Folder

MOST_SHOWN = 20  # lines of one kind; the rest is in the table


@dataclass(frozen=True)
class FolderChoice:
    """The arguments of `course grade SUBMISSIONS --out RESULTS`.

    `source`: a folder of submissions, or an export's zip. `exercises`: all of the course; `only`: the exercises to
    judge, all if empty. `regrade`: the students whose texts are judged again.
    """

    source: Path
    out: Path
    exercises: tuple[Folder, ...]
    roster: tuple[Person, ...] = ()
    only: tuple[Folder, ...] = ()
    regrade: Students = Students()
    how: How = How()
    speed: bool = True  # whether what only a GPU can show counts


def grade_folder(choice: FolderChoice, say: Say) -> int:
    """Judges a folder of submissions, and writes results, tables and a report page into `choice.out`.

    Returns the exit status: 1 where a fault of the machine kept work from being judged, else 0. Raises ClickException
    where `choice.source` holds no submissions.
    """
    check_isolation(choice.how)
    choice.out.mkdir(mode=0o700, parents=True, exist_ok=True)  # it will hold grades
    found = patiently(lambda: _read(choice), say)
    for each in found.around:
        say(f"{each}/ was taken for a folder around students' folders.")
    if choice.roster and found.unknown:
        say(f"Not in the roster, kept under the name that the folder gives: {', '.join(sorted(found.unknown))}")
    for line in found.ignored[:MOST_SHOWN]:
        say(f"Ignored: {line}")
    for line in found.clashes[:MOST_SHOWN]:
        say(line)
    _check(found, choice)
    results = Results(choice.out / "texts")
    wanted = {folder.id for folder in choice.only or choice.exercises}
    there = [one for one in found.all if not one.hand_in.absent and one.exercise in wanted]
    judge_missing(there, choice.regrade, results, choice.how, say)
    graded = _with_results(found, results, choice)
    possible = _most_points(graded, choice)
    patiently(lambda: write_output(graded, found.people, possible, choice.out), say)
    course, page = choice.exercises[0].root, choice.out / "report.html"
    patiently(lambda: write_report(graded, course, page, found.ignored), say)
    return _tell([one for one in graded if one.exercise in wanted], page, say)


def _read(choice: FolderChoice) -> Submissions:
    _refuse_other_folders(choice.source)
    return read_submissions(choice.source, list(choice.exercises), choice.only, choice.out, choice.roster)


def _refuse_other_folders(source: Path) -> None:
    """Raises ClickException for a folder of this command's results, and for the course itself.

    Their contents would look like a class of strange students.
    """
    if (source / "summary.csv").exists() and (source / "texts").is_dir():
        raise click.ClickException(
            f"{source} holds results of this command, not submissions. Name the folder of submissions."
        )
    if (source / "exercises").is_dir() and (source / "solutions").is_dir():
        raise click.ClickException(f"{source} is the course itself. Name a folder of submissions.")


def _check(found: Submissions, choice: FolderChoice) -> None:
    if not found.exercises and (not choice.only or all(one.hand_in.absent for one in found.all)):
        name = (choice.only or choice.exercises)[0].name
        raise click.ClickException(
            f"{choice.source} holds no submission: STUDENT/{name}.py or STUDENT_{name}.py was expected, a .py file or "
            "a notebook. If the files are called STUDENT.py, say which exercise they are for with --only NN."
        )
    for student in choice.regrade.names:
        if student not in found.students:
            raise click.ClickException(f"--regrade: {choice.source} has nothing of a student {student!r}.")


def _most_points(graded: list[StudentWork], choice: FolderChoice) -> dict[str, float]:
    """Returns the most points of each exercise by its id. Of one for which nothing is judged, pytest lists them; it is
    left out where it cannot."""
    found = {one.exercise: one.judged.possible for one in graded if one.judged and one.judged.tests}
    shown = {one.exercise for one in graded} - {*found}
    folders = [folder for folder in choice.exercises if folder.id in shown]
    try:
        listed = points_of(folders) if folders else {}
    except RubricError:
        listed = {}
    counts = {id: sum(worth for item, worth in items.items() if choice.speed or item != SPEED)
              for id, items in listed.items()}  # fmt: skip
    return {**counts, **found}


def _with_results(found: Submissions, results: Results, choice: FolderChoice) -> list[StudentWork]:
    """Returns everyone's work with its results, for each exercise that was asked for, or that somebody handed in.

    Exercises that were not asked for are left out unless they have texts, each with a result.
    """
    for one in found.all:
        one.result, one.without = results.find(one.text) if one.text else None, () if choice.speed else (SPEED,)
    only = {folder.id for folder in choice.only}
    known, unknown = (
        {one.exercise for one in found.all if one.text and bool(one.result) == has} for has in (True, False)
    )
    shown = known - unknown | only if only else found.exercises
    return [one for one in found.all if one.exercise in shown]


def _tell(graded: list[StudentWork], page: Path, say: Say) -> int:
    for exercise in sorted({one.exercise for one in graded}):
        counts = Counter(one.status for one in graded if one.exercise == exercise)
        told = ", ".join(
            f"{counts[status]} {status}" for status in (GRADED, PARTLY, NOT_GRADED, MISSING) if counts[status]
        )
        say(f"{exercise}: {told}.")
    waiting = [one for one in graded if one.status == PARTLY]
    problems = [one for one in graded if one.hand_in.problem and one.status == NOT_GRADED]
    faults = [one for one in graded if one.fault]
    _tell_list("Waiting for a machine that can judge it (points open, neither 0 nor full)", waiting, say)
    _tell_list("Not graded, for the student to mend", problems, say)
    _tell_list("Not graded, a fault here and not a student's", faults, say)
    say(f"{page.parent}/: summary.csv, totals.csv, items.csv, feedback/, students/, exports/")
    if faults:
        say("Next: mend the fault (course doctor), then run the same command: it judges what is missing.")
        return 1
    if waiting:
        say("Next: the same command where there is a GPU; or --no-speed, if what only a GPU can show is not to count.")
    say(f"{'Meanwhile' if waiting else 'Next'}: open {page.resolve().as_uri()}")
    return 0


def _tell_list(title: str, graded: list[StudentWork], say: Say) -> None:
    if graded:
        say(f"{title}:")
    for one in graded[:MOST_SHOWN]:
        say(f"  {one.student}, {one.exercise}: {one.note}")
    if len(graded) > MOST_SHOWN:
        say(f"  and {len(graded) - MOST_SHOWN} more, in summary.csv")
