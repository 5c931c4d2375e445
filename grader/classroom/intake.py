"""Copies a learning platform's export (a zip or a folder of files) into nbgrader's submitted/ folder.

grader.classroom.by_student says whose a file is. Files keep the names that their students know, as far as they can lie
in one folder, and their order in time: grader.classroom.handin decides which of them counts, here as elsewhere.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path, PurePosixPath

import click

from grader.classroom.by_student import Sent, by_student, clash, is_unclear, unclear, why_not
from grader.classroom.intake_notes import Note, write_notes
from grader.classroom.names import Names, Person, as_folder
from grader.classroom.patience import is_away
from grader.classroom.sent_files import HIDDEN, LINK, MOST_BYTES, NO_FILE, File, files_in, sent
from grader.files import keep_aside
from grader.sentences import joined


@dataclass
class Intake:
    """The outcome for an export's files: how many were copied, and how many were there already.

    `ignored`: the paths of files that name no student, with the reason. `clashes`: a sentence for each exercise that a
    student has at several places of the export, and that is taken from none of them, and for each name that several
    students have. `around`: the folders that were taken for ones around the students' folders. `elsewhere`: the number
    of files by exercise that the class does not have.
    """

    taken: int = 0
    unchanged: int = 0
    students: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)  # students that the roster does not have
    ignored: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)
    around: tuple[str, ...] = ()
    elsewhere: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Others:
    """The exercises whose files may come in an export besides those that a run grades.

    `notebooks`: the exercises' names by assignment, of assignments that were not chosen or are not generated yet: their
    files go there and wait. `course`: the ids of all exercises of the course by their names.
    """

    notebooks: dict[str, list[str]] = field(default_factory=dict)
    course: dict[str, str] = field(default_factory=dict)


NO_OTHERS = Others()


def take_in(
    source: Path, submitted: Path, notebooks: dict[str, list[str]], roster: list[Person], others: Others = NO_OTHERS
) -> Intake:
    """Copies every file that names a student. `notebooks`: the exercises' names, by assignment that is graded.

    A file that names no exercise goes where the other files of the export go, if that is one assignment; of several, to
    each for which its student has sent nothing: there its student is told. A file of an exercise that the class does
    not have goes to all that are graded, where its student sent nothing else. Raises ClickException where the export
    cannot be read, or an exercise is part of several assignments and none is named.
    """
    with sent(source) as files:
        return _copied(files, submitted, notebooks, roster, others)


def take_in_groups(
    submitted: Path, notebooks: dict[str, list[str]], roster: list[Person], others: Others = NO_OTHERS
) -> Intake:
    """Copies what lies in submitted/ADA+BOB to ADA and to BOB: to nbgrader such a folder would be one more student.

    There it gets a folder of its own, and keeps its time: what one of them hands in alone later is newer.
    """
    groups = [path.name for path in submitted.glob("*+*") if path.is_dir()]
    files = [file for file in files_in(submitted) if file.path.parts[0] in groups] if groups else []
    inner = [replace(file, path=PurePosixPath(file.path.parts[0]) / file.path) for file in files]
    return _copied(inner, submitted, notebooks, roster, others, keep_times=True)


def _copied(
    files: list[File],
    submitted: Path,
    notebooks: dict[str, list[str]],
    roster: list[Person],
    others: Others,
    keep_times: bool = False,
) -> Intake:
    of_class = {*notebooks, *others.notebooks}
    known = {name for each in (*notebooks.values(), *others.notebooks.values()) for name in each}
    names = Names(known | {*others.course}, of_class, roster)
    told = by_student(files, names)
    intake = Intake(unknown=set(map(as_folder, told.unknown)), ignored=list(told.ignored), around=told.around)
    intake.clashes += told.twice
    found: dict[tuple[str, str], list[Sent]] = {}
    rest: list[Sent] = []
    for one in told.sent:
        assignment = _assignment(one, notebooks, others) if one.exercise in known else ""
        for student in map(as_folder, one.students) if assignment else ():
            found.setdefault((student, assignment), []).append(one)
        rest += [] if assignment else [one]
    intake.elsewhere.update(one.exercise for one in rest if one.exercise)
    assignments = {assignment for _, assignment in found} or set(notebooks)
    sending = {student for student, _ in found}
    unnamed: dict[tuple[str, str], list[Sent]] = {}
    for one in rest:
        named = [each for each in of_class if each in one.file.path.parts] or list(assignments)
        mentioned = [each for each in named if one.mentioned in notebooks.get(each, others.notebooks.get(each, ()))]
        for student in map(as_folder, one.students):
            lacking = [each for each in named if (student, each) not in found] if len(named) > 1 else named
            if mentioned:  # there a note tells it
                lacking = mentioned
            elif one.exercise:
                lacking = [] if student in sending else list(notebooks)
            for assignment in lacking:
                unnamed.setdefault((student, assignment), []).append(replace(one, exercise=""))
            if not lacking and not one.exercise:
                intake.ignored.append(why_not(one))
    for place, held in unnamed.items():
        found.setdefault(place, []).extend(held)
    for (student, assignment), held in found.items():
        _take(submitted / student / assignment, student, held, intake, keep_times)
        intake.students.add(student)
    intake.ignored.sort()
    return intake


def _take(folder: Path, student: str, held: list[Sent], intake: Intake, keep_times: bool) -> None:
    """Copies a student's files of an assignment, and notes what is not to be seen in them."""
    folder.mkdir(parents=True, exist_ok=True)
    notes, taken = {}, [one for one in held if not one.exercise]
    for name in sorted({one.exercise for one in held} - {""}):
        files = [one for one in held if one.exercise == name]
        problem = ""
        if is_unclear(files):
            problem = unclear(files)
            intake.clashes.append(clash(student, problem, files, intake.around))
        else:
            taken += files
        together = tuple(sorted({as_folder(id) for one in files for id in one.students}))
        notes[name] = Note(together if len(together) > 1 else (), problem)
    for one, why in _keep(folder, taken, intake, keep_times):
        name, told = one.exercise, f"{one.chosen} {why}"
        if name:
            notes[name] = Note(notes[name].together, joined((notes[name].problem, told)))
        else:
            intake.ignored.append(f"{one.file.path}: {why}")
    write_notes(folder, notes)


def _keep(folder: Path, held: list[Sent], intake: Intake, keep_times: bool) -> list[tuple[Sent, str]]:
    """Writes the files that are not there yet; returns those that cannot be kept, and why.

    Where one is written, all get the order in time that they have in the export, after all that was there before; with
    `keep_times` each gets the time of the file that was sent.
    """
    targets, refused, is_new = [], [], False
    for one, target in _targets(folder, held):
        try:
            data = _content(one.file)
        except ValueError as problem:
            refused.append((one, str(problem)))
            continue
        path = folder / target
        targets.append((one, path))
        if path.exists() and path.read_bytes() == data:
            intake.unchanged += 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            keep_aside(path)
        path.write_bytes(data)
        intake.taken, is_new = intake.taken + 1, True
    ages, now = sorted({_age(one) for one, _ in targets}), time.time()
    for one, path in targets if is_new else ():
        os.utime(path, (one.file.time if keep_times else now + ages.index(_age(one)),) * 2)
    return refused


def _content(file: File) -> bytes:
    """Returns what a file holds. Raises ValueError with the reason where it is not to be kept; OSError of a share."""
    if file.problem in (LINK, NO_FILE):  # a link would lead to a file of the instructor's
        raise ValueError(file.problem)
    if file.size > MOST_BYTES:
        raise ValueError(f"has {file.size >> 20} MB and was not taken; hand in the kernel, or clear the outputs")
    try:
        return file.read()
    except OSError as error:
        if is_away(error):
            raise
        raise ValueError(f"cannot be read ({error.strerror or type(error).__name__})") from None


def _targets(folder: Path, held: list[Sent]) -> Iterator[tuple[Sent, PurePosixPath]]:
    """Yields each file with its path in the hand-in's folder, the newest first: it gets the student's name for it.

    An older one of the same name goes into a folder "earlier 1".
    """
    files: set[PurePosixPath] = set()
    folders: set[PurePosixPath] = set()
    for one in sorted(held, key=_age, reverse=True):
        mark = ".hidden" if one.file.problem == HIDDEN else ""  # it is told, and is nobody's exercise
        own = PurePosixPath(*map(as_folder, one.owner.inner), f"{as_folder(one.chosen)}{mark}")
        others = (PurePosixPath(f"earlier {number}", own.name) for number in count(1))
        target = next(
            each for each in chain([own], others)
            if each not in files | folders and not files & set(each.parents) and _fits(folder, each)
        )  # fmt: skip
        files.add(target)
        folders |= set(target.parents)
        yield one, target


def _fits(folder: Path, target: PurePosixPath) -> bool:
    """Returns whether a file can lie there: nothing else is in its way, and nbgrader takes no folder for a notebook."""
    outer = target.parents[:-1]
    is_free = not (folder / target).is_dir() and not any((folder / each).is_file() for each in outer)
    return is_free and not any(each.name.lower().endswith(".ipynb") for each in outer)


def _age(one: Sent) -> tuple[int, float]:
    return one.file.turn, one.file.time


def _assignment(one: Sent, notebooks: dict[str, list[str]], others: Others) -> str:
    """Returns the assignment of a file's exercise: the one that its path names, else one that is graded now."""
    graded, waiting = (
        [assignment for assignment, names in each.items() if one.exercise in names]
        for each in (notebooks, others.notebooks)
    )
    named = [assignment for assignment in (*graded, *waiting) if assignment in one.file.path.parts]
    choice = named or graded or waiting
    if len(choice) > 1:
        raise click.ClickException(
            f"{one.exercise} is part of {' and '.join(choice)}. Name the assignment: course grade {choice[0]} ..."
        )
    return choice[0]
