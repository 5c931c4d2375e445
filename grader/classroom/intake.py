"""Copies a learning platform's export (a zip or a folder of files) into nbgrader's submitted/ folder.

It understands STUDENT/ASSIGNMENT/softmax.py, STUDENT/softmax.py, STUDENT_softmax.py, Moodle's
"Ada Lovelace_123_assignsubmission_file_softmax.py" (also as a folder), and Canvas'
lovelaceada_LATE_123_456_softmax-1.py.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import click

from grader.classroom.handin import MOST_NOTEBOOK_BYTES
from grader.files import keep_aside
from grader.wire.printable import is_steering

KINDS = (".py", ".ipynb")
MOODLE = re.compile(r"(?P<who>.+?)_(?P<number>\d+)_assignsubmission_\w*?_?", re.IGNORECASE)
CANVAS = re.compile(r"(?P<who>[^_]+)_(?:LATE_)?(?P<number>\d+)_\d+", re.IGNORECASE)
MOST_ENTRIES = 50_000


@dataclass(frozen=True)
class Person:
    """A student of the roster, by every name that a platform may use."""

    id: str
    first: str
    last: str
    email: str
    platform_id: str


@dataclass
class Intake:
    """The outcome for an export's files: how many were copied, and how many were there already.

    `ignored`: the paths of files that name no student or exercise, or are too large.
    """

    taken: int = 0
    unchanged: int = 0
    students: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)  # students that the roster does not have
    ignored: list[str] = field(default_factory=list)


def take_in(source: Path, submitted: Path, notebooks: dict[str, list[str]], roster: list[Person]) -> Intake:
    """Copies every file that names a student and an exercise. `notebooks`: the exercises' names, by assignment.

    Raises ClickException where the export cannot be read, or an exercise is part of several assignments and none is
    named.
    """
    intake = Intake()
    names = sorted({name for each in notebooks.values() for name in each}, key=len, reverse=True)
    pattern = re.compile(rf"(?P<who>.*?)_?(?P<name>{'|'.join(map(re.escape, names))})(?:[ _-]?\(?\d+\)?)?")
    for path, data in _files(source):
        found = pattern.fullmatch(path.stem) if path.suffix in KINDS else None
        if found is None or data is None or not (who := _who(path, found, notebooks)):
            intake.ignored.append(str(path))
            continue
        assignment = _assignment(path, found["name"], notebooks)
        person = _known(who, roster)
        student = person.id if person else _as_folder(_bare(who)[0])
        if person is None:
            intake.unknown.add(student)
        _keep(submitted / student / assignment / f"{found['name']}{path.suffix}", data, intake)
        intake.students.add(student)
    return intake


def _files(source: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Yields the path of each file inside of the export, and its bytes; None for a file too large to be a hand-in.

    Raises ClickException where a zip cannot be read.
    """
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            inside = PurePosixPath(path.relative_to(source).as_posix())
            if path.is_file() and not path.is_symlink() and not _is_clutter(inside):
                yield inside, path.read_bytes() if path.stat().st_size <= MOST_NOTEBOOK_BYTES else None
        return
    try:
        with zipfile.ZipFile(source) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MOST_ENTRIES:
                raise click.ClickException(f"{source} holds {len(entries)} files; {MOST_ENTRIES} are the most.")
            for entry in entries:
                inside = PurePosixPath(entry.filename.replace("\\", "/"))
                if not _is_clutter(inside):
                    yield inside, archive.read(entry) if entry.file_size <= MOST_NOTEBOOK_BYTES else None
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # RuntimeError: it has a password
        raise click.ClickException(f"{source} cannot be read as a zip file ({error}). Download it again.") from None


def _is_clutter(path: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _who(path: PurePosixPath, found: re.Match, notebooks: dict[str, list[str]]) -> str:
    """Returns the part of a path that names the student: the beginning of the file's name, else the nearest folder.

    "" if neither names a student.
    """
    if found["who"].strip():
        return found["who"].strip()
    exercises = {name for each in notebooks.values() for name in each}
    for part in reversed(path.parts[:-1]):
        if part not in notebooks and part not in exercises and not re.fullmatch(r"\d\d_\w+", part):
            return part
    return ""


def _assignment(path: PurePosixPath, name: str, notebooks: dict[str, list[str]]) -> str:
    holding = [assignment for assignment, names in notebooks.items() if name in names]
    named = [assignment for assignment in holding if assignment in path.parts]
    choice = named or holding
    if len(choice) > 1:
        raise click.ClickException(
            f"{name} is part of {' and '.join(choice)}. Name the assignment: course grade {choice[0]} ..."
        )
    return choice[0]


def _bare(who: str) -> tuple[str, str]:
    """Returns a student's name, and number on the platform, from what a platform writes; "" for a missing number."""
    found = MOODLE.fullmatch(who) or CANVAS.fullmatch(who)
    return (found["who"], found["number"]) if found else (who, "")


def _known(who: str, roster: list[Person]) -> Person | None:
    name, number = _bare(who)
    wanted = _letters(name)
    for person in roster:
        if person.id == who or (number and person.platform_id == number):
            return person
    matching = [
        person
        for person in roster
        if wanted in {_letters(person.id), _letters(person.first + person.last), _letters(person.last + person.first),
                      _letters(person.email), _letters(person.email.partition("@")[0])}
    ]  # fmt: skip
    return matching[0] if wanted and len(matching) == 1 else None


def _letters(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


def _as_folder(name: str) -> str:
    """Returns a student's name as the name of a folder.

    Slashes and plus signs, which nbgrader would interpret, and control characters become underscores.
    """
    return re.sub(r"[/\\+]", "_", "".join("_" if is_steering(c) else c for c in name)).lstrip(".") or "_"


def _keep(path: Path, data: bytes, intake: Intake) -> None:
    if path.exists() and path.read_bytes() == data:
        intake.unchanged += 1
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        keep_aside(path)
    path.write_bytes(data)
    intake.taken += 1
