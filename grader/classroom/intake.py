"""Copies a learning platform's export (a zip or a folder of files) into nbgrader's submitted/ folder.

grader.classroom.names says which names are understood.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import click

from grader.classroom.handin import OF_NBGRADER
from grader.classroom.names import Names, Owner, Person, as_folder, submitters
from grader.classroom.sent_files import MOST_BYTES, File, sent
from grader.files import keep_aside

MOST_NAMED = 3  # paths of a clash


@dataclass
class Intake:
    """The outcome for an export's files: how many were copied, and how many were there already.

    `ignored`: the paths of files that name no student, or are too large. `clashes`: a sentence for each exercise that a
    student has at several places of the export, and that is taken from none of them.
    """

    taken: int = 0
    unchanged: int = 0
    students: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)  # students that the roster does not have
    ignored: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Sent:
    """A file of an export, and what its path names. `name`: the exercise, and "" where it names none."""

    file: File
    owner: Owner
    chosen: str  # the name that the student chose for the file
    name: str
    kind: str


def take_in(source: Path, submitted: Path, notebooks: dict[str, list[str]], roster: list[Person]) -> Intake:
    """Copies every file that names a student. `notebooks`: the exercises' names, by assignment.

    A file that names no exercise goes where the other files of the export go, if that is one assignment: there its
    student is told. Raises ClickException where the export cannot be read, or an exercise is part of several
    assignments and none is named.
    """
    intake = Intake()
    names = Names({name for each in notebooks.values() for name in each}, notebooks, roster)
    found: dict[tuple[str, str, str], list[_Sent]] = {}
    with sent(source) as files:
        by_folder, unnamed = submitters(files), []
        for one in _named(files, names, intake):
            people = names.people_of(one.owner, by_folder, one.owner.name)
            for student in (as_folder(person.id) for person, _ in people):
                if one.name:
                    assignment = _assignment(one.file.path, one.name, notebooks)
                    found.setdefault((student, assignment, one.name), []).append(one)
                else:
                    unnamed.append((student, one))
            intake.unknown |= {as_folder(person.id) for person, is_known in people if not is_known}
        assignments = {assignment for _, assignment, _ in found} or set(notebooks)
        for (student, assignment, name), held in found.items():
            if len({one.owner.place for one in held}) > 1:
                intake.clashes.append(_clash(student, name, [one.file.path for one in held]))
                continue
            for number, (target, one) in enumerate(_targets(name, held)):
                _keep(submitted / student / assignment / target, one.file.read(), number, intake)
            intake.students.add(student)
        for student, one in unnamed:
            named = [each for each in notebooks if each in one.file.path.parts] or list(assignments)
            if len(named) > 1:
                intake.ignored.append(str(one.file.path))
                continue
            _keep(submitted / student / named[0] / as_folder(one.chosen), one.file.read(), 0, intake)
            intake.students.add(student)
    intake.ignored.sort()
    return intake


def _named(files: list[File], names: Names, intake: Intake) -> Iterator[_Sent]:
    """Yields the files that name a student; the others are ignored."""
    for file in files:
        if file.path.name in OF_NBGRADER:  # a student's own would forge the time
            continue
        owner, chosen = names.owner_of(file.path)
        if owner is None or file.size > MOST_BYTES:
            intake.ignored.append(str(file.path))
            continue
        yield _Sent(file, owner, chosen, *(names.exercise_of(chosen) or ("", "")))


def _targets(name: str, held: list[_Sent]) -> list[tuple[str, _Sent]]:
    """Returns the name under which each file is kept, the oldest file first: the newest of a kind gets the exercise's.

    A platform counts hand-ins, and adds a number to the names of further files.
    """

    def age(one: _Sent) -> tuple[int, float, list[int]]:
        digits = "".join(c if c.isdecimal() else " " for c in one.chosen).split()
        return int(one.owner.hand_in or 0), one.file.time, [int(each) for each in digits]

    targets = []
    for kind in sorted({one.kind for one in held}):
        *older, newest = sorted((one for one in held if one.kind == kind), key=age)
        targets += [(f"{name}-{number}{kind}", one) for number, one in enumerate(older, 1)]
        targets.append((f"{name}{kind}", newest))
    return sorted(targets, key=lambda target: age(target[1]))


def _assignment(path: PurePosixPath, name: str, notebooks: dict[str, list[str]]) -> str:
    holding = [assignment for assignment, names in notebooks.items() if name in names]
    named = [assignment for assignment in holding if assignment in path.parts]
    choice = named or holding
    if len(choice) > 1:
        raise click.ClickException(
            f"{name} is part of {' and '.join(choice)}. Name the assignment: course grade {choice[0]} ..."
        )
    return choice[0]


def _clash(student: str, name: str, paths: list[PurePosixPath]) -> str:
    places = [str(path) for path in paths]
    if len(places) > MOST_NAMED:
        places[MOST_NAMED - 1 :] = [f"{len(places) - MOST_NAMED + 1} more"]
    neither, (top, *others) = "neither" if len(paths) == 2 else "none", {path.parts[0] for path in paths}
    return (
        f"Taken from {neither}, for each would be {name} of {student}: {', '.join(places[:-1])} and {places[-1]}. "
        "Leave one of them in the export, then run the command again."
        + ("" if others else f" If {top} is no student's, unpack the export, and name that folder instead.")
    )


def _keep(path: Path, data: bytes, number: int, intake: Intake) -> None:
    """Writes a file, unless it is there already. `number`: of files of an export a higher one shall be newer."""
    if path.exists() and path.read_bytes() == data:
        intake.unchanged += 1
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        keep_aside(path)
    path.write_bytes(data)
    os.utime(path, (time.time() + number,) * 2)
    intake.taken += 1
