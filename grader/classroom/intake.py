"""Copies a learning platform's export (a zip or a folder of files) into nbgrader's submitted/ folder.

It understands STUDENT/ASSIGNMENT/softmax.py, STUDENT/softmax.py, STUDENT_softmax.py, Moodle's
"Ada Lovelace_123_assignsubmission_file_softmax.py" (also as a folder), and Canvas'
lovelaceada_LATE_123_456_softmax-1.py.

The outermost folder is the platform's, and so is the beginning of a file's name where there is no folder: they name the
student. What follows is the student's own choice, and names an exercise or nothing.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

import click

from grader.classroom.handin import MOST_NOTEBOOK_BYTES
from grader.files import keep_aside
from grader.wire.printable import is_steering

KINDS = (".py", ".ipynb")
# What a platform writes, and as `rest` what the student chose. Canvas tells the student's number, Moodle a hand-in's.
CANVAS = re.compile(r"(?P<who>[^_]+)_(?:LATE_)?(?P<number>\d+)_\d+(?:_(?P<rest>.*))?", re.IGNORECASE | re.DOTALL)
MOODLE = re.compile(r"(?P<who>.+?)_\d+_assignsubmission_[^\W_]+_?(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
MOST_ENTRIES = 50_000
MOST_NAMED = 3  # paths of a clash


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

    `ignored`: the paths of files that name no student or exercise, or are too large. `clashes`: a sentence for each
    exercise that a student has at several places of the export, and that is taken from none of them.
    """

    taken: int = 0
    unchanged: int = 0
    students: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)  # students that the roster does not have
    ignored: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _File:
    path: PurePosixPath  # inside of the export
    size: int
    read: Callable[[], bytes]


@dataclass(frozen=True)
class _Owner:
    """Whom a path names, and in which folder, or by the beginning of which files. `number`: see CANVAS; "" for none."""

    name: str
    number: str
    place: tuple[str, ...]


def take_in(source: Path, submitted: Path, notebooks: dict[str, list[str]], roster: list[Person]) -> Intake:
    """Copies every file that names a student and an exercise. `notebooks`: the exercises' names, by assignment.

    Raises ClickException where the export cannot be read, or an exercise is part of several assignments and none is
    named.
    """
    intake = Intake()
    names = sorted({name for each in notebooks.values() for name in each}, key=len, reverse=True)
    exercise = rf"(?P<name>{'|'.join(map(re.escape, names))})(?:[ _-]?\(?\d+\)?)?"
    found: dict[tuple[str, str, str], list[tuple[_Owner, _File]]] = {}
    with _opened(source) as files:
        for file in files:
            owner, name = _named(file.path, exercise, {*names, *notebooks}, roster)
            if owner is None or file.size > MOST_NOTEBOOK_BYTES:
                intake.ignored.append(str(file.path))
                continue
            person = _known(owner.name, owner.number, roster)
            student = person.id if person else _as_folder(owner.name)
            if person is None:
                intake.unknown.add(student)
            found.setdefault((student, _assignment(file.path, name, notebooks), name), []).append((owner, file))
        for (student, assignment, name), held in found.items():
            if len({owner.place for owner, _ in held}) > 1:
                intake.clashes.append(_clash(student, name, [file.path for _, file in held]))
                continue
            for _, file in held:
                _keep(submitted / student / assignment / f"{name}{file.path.suffix}", file.read(), intake)
            intake.students.add(student)
    return intake


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[list[_File]]:
    """Yields the files of an export. Raises ClickException where a zip cannot be read."""
    if source.is_dir():
        there = [path for path in sorted(source.rglob("*")) if path.is_file() and not path.is_symlink()]
        files = [_File(PurePosixPath(p.relative_to(source)), p.stat().st_size, p.read_bytes) for p in there]
        yield [file for file in files if not _is_clutter(file.path)]
        return
    try:
        with zipfile.ZipFile(source) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MOST_ENTRIES:
                raise click.ClickException(f"{source} holds {len(entries)} files; {MOST_ENTRIES} are the most.")
            paths = [PurePosixPath(entry.filename.replace("\\", "/")) for entry in entries]
            files = [_File(p, e.file_size, partial(archive.read, e)) for p, e in zip(paths, entries)]
            yield [file for file in files if not _is_clutter(file.path)]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # RuntimeError: it has a password
        raise click.ClickException(f"{source} cannot be read as a zip file ({error}). Download it again.") from None


def _is_clutter(path: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _named(path: PurePosixPath, exercise: str, of_course: set[str], roster: list[Person]) -> tuple[_Owner | None, str]:
    """Returns whom a path names, and the name of the exercise; None and "" where it does not name both.

    `exercise`: a pattern of such names. `of_course`: the names of folders that are the course's, and no student's.
    """
    folders = path.parts[:-1]
    top = next((part for part in folders if part not in of_course and not re.fullmatch(r"\d\d_\w+", part)), "")
    first, plain = (top, "(?P<who>.+)") if top else (path.stem, rf"(?P<who>.+?)_(?P<rest>{exercise})")
    by_platform = CANVAS.fullmatch(first) or MOODLE.fullmatch(first)
    given = by_platform or re.fullmatch(plain, first, re.DOTALL)
    if given is None or path.suffix not in KINDS or path.is_absolute():
        return None, ""
    who, number = given["who"].strip(), given.groupdict().get("number", "")
    found = re.fullmatch(exercise, path.stem if top else given["rest"] or "")
    in_doubt = not top and not by_platform and _may_be_shorter(who, roster)
    if not who or found is None or in_doubt:
        return None, ""
    return _Owner(who, number, folders if top else (*folders, who, number)), found["name"]


def _may_be_shorter(who: str, roster: list[Person]) -> bool:
    """Returns whether a beginning of this name is another student's: the rest may be the student's own choice."""
    parts = who.split("_")
    named = {_known("_".join(parts[:count]), "", roster) for count in range(1, len(parts))}
    return bool(named - {None, _known(who, "", roster)})


def _assignment(path: PurePosixPath, name: str, notebooks: dict[str, list[str]]) -> str:
    holding = [assignment for assignment, names in notebooks.items() if name in names]
    named = [assignment for assignment in holding if assignment in path.parts]
    choice = named or holding
    if len(choice) > 1:
        raise click.ClickException(
            f"{name} is part of {' and '.join(choice)}. Name the assignment: course grade {choice[0]} ..."
        )
    return choice[0]


def _known(name: str, number: str, roster: list[Person]) -> Person | None:
    for person in roster:
        if person.id == name or (number and person.platform_id == number):
            return person
    wanted = _letters(name)
    matching = [
        person
        for person in roster
        if wanted in {_letters(person.id), _letters(person.first + person.last), _letters(person.last + person.first),
                      _letters(person.email), _letters(person.email.partition("@")[0])}
    ]  # fmt: skip
    return matching[0] if wanted and len(matching) == 1 else None


def _letters(name: str) -> str:
    """Returns a name's letters with their marks, and its digits, alike in both ways to write a letter with a mark."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")


def _as_folder(name: str) -> str:
    """Returns a student's name as the name of a folder.

    Slashes and plus signs, which nbgrader would interpret, and control characters become underscores.
    """
    plain = "".join("_" if is_steering(c) else c for c in unicodedata.normalize("NFC", name))
    return re.sub(r"[/\\+]", "_", plain).lstrip(".") or "_"


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


def _keep(path: Path, data: bytes, intake: Intake) -> None:
    if path.exists() and path.read_bytes() == data:
        intake.unchanged += 1
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        keep_aside(path)
    path.write_bytes(data)
    intake.taken += 1
