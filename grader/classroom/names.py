"""Whose a file is and of which exercise, by its path in a class's folder or in a learning platform's export.

The names of files are understood as students, browsers and platforms write them: "softmax (1).py", "Softmax.py",
"softmax.py.txt", "03_softmax-2.ipynb". Of students: STUDENT/anything/softmax.py, STUDENT_softmax.py, Moodle's
"Ada Lovelace_123_assignsubmission_file_softmax.py" (also as a folder), Canvas'
lovelaceada_LATE_123_456_softmax-1.py, and Gradescope's submission_123/, whose students submission_metadata.yml names.

The outermost folder is the platform's, and so is the beginning of a file's name where there is no folder: they name the
student. What follows is the student's own choice, and names an exercise or nothing.
"""

from __future__ import annotations

import csv
import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import click

from grader.classroom.sent_files import File
from grader.wire.printable import is_steering

# These patterns match the names that platforms give to files: `rest` is the part that the student chose. The number is
# the student's on Canvas, and the participant's on Moodle. `typed`: what was typed on Canvas has no hand-in's number.
CANVAS = re.compile(
    r"(?P<who>[^_]+)_(?:LATE_)?(?P<number>\d+)_(?:(?P<hand_in>\d+)(?:_(?P<rest>.*))?|(?P<typed>(?:text|link)\.html))",
    re.IGNORECASE | re.DOTALL,
)
MOODLE = re.compile(
    r"(?P<who>.+?)_(?P<participant>\d+)_assignsubmission_[^\W_]+_?(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
OF_NOBODY = re.compile(r"\d\d_\w+|assignment_\d+_export")  # folders of exercises, and Gradescope's around all others
METADATA = re.compile(r"(assignment_\d+_export/)?submission_metadata\.yml")
GRADESCOPE = re.compile(r"submission_\d+")
FILE = re.compile(r"(?P<stem>.+?)(?P<kind>\.py|\.ipynb)?(?P<more>\.txt|\.json)?", re.IGNORECASE | re.DOTALL)
# Browsers, systems and notebook services add these words to the name of a second file, each in its own language.
COPY_OF = r"(?:(?:copy of|kopie von|copie de|copia de|cópia de)[ _-])?"
COPIES = r"(?:[ _-]*(?:copy|kopie|copie|copia|cópia)?[ _-]*\(?\d*\)?)"
CLOSE = 0.75  # as difflib counts: a misspelt name
COLUMNS = ("id", "first_name", "last_name", "email", "lms_user_id")  # of nbgrader's list of students


@dataclass(frozen=True)
class Person:
    """A student, by every name that a platform may use."""

    id: str
    first: str = ""
    last: str = ""
    email: str = ""
    platform_id: str = ""


@dataclass(frozen=True)
class Owner:
    """Whom a path names, and in which folder, or by the beginning of which files.

    `number`: the student's on the platform; `participant`: what tells two of one name apart; `hand_in`: a number that
    grows with each hand-in; "" for none. `inner`: the folders in that folder, which are the student's own.
    """

    name: str
    number: str
    participant: str
    hand_in: str
    place: tuple[str, ...]
    inner: tuple[str, ...] = ()


class Names:
    """The names of a course's exercises and of a class's students. `folders`: names of folders of the course."""

    def __init__(self, exercises: Iterable[str], folders: Iterable[str] = (), roster: Sequence[Person] = ()) -> None:
        self.exercises = sorted(exercises, key=len, reverse=True)
        self.folders, self.roster = {*self.exercises, *folders}, roster
        self._by_letters = {re.sub("_", "", name).casefold(): name for name in self.exercises}
        names = "|".join(re.escape(name).replace("_", "[ _-]?") for name in self.exercises)
        self._pattern = re.compile(rf"{COPY_OF}(?:\d\d[ _-])?(?P<name>{names}){COPIES}", re.IGNORECASE)

    def exercise_of(self, name: str) -> tuple[str, str] | None:
        """Returns the exercise that a file's name means, and ".py" or ".ipynb"; None where it means none."""
        file = FILE.fullmatch(name)
        if file is None or not (file["kind"] or (file["more"] or "").lower() == ".txt"):
            return None
        found = self._pattern.fullmatch(file["stem"])
        kind = (file["kind"] or ".py").lower()
        return (self._by_letters[re.sub("[ _-]", "", found["name"]).casefold()], kind) if found else None

    def mentioned_in(self, name: str) -> str:
        """Returns the exercise whose name is part of a file's name that names none, as softmax_final_v2.py; or ""."""
        letters = re.sub("[ _-]", "", PurePosixPath(name).stem).casefold()
        return next((found for key, found in self._by_letters.items() if key in letters), "")

    def owner_of(self, path: PurePosixPath) -> tuple[Owner | None, str]:
        """Returns whom a path names, and the name that the student chose for the file; None where it names nobody."""
        folders = path.parts[:-1]
        top = next((part for part in folders if not self.is_folder(part)), "")
        first = top or path.name
        by_platform = CANVAS.fullmatch(first) or MOODLE.fullmatch(first)
        told = {key: value or "" for key, value in by_platform.groupdict().items()} if by_platform else {}
        if path.is_absolute():
            return None, ""
        if told:
            who, rest = told["who"].strip(), told["rest"] or told.get("typed", "")
        else:
            who, rest = (re.sub(r"(?i)\.zip$", "", top).strip(), path.name) if top else self._before_exercise(path.name)
        if not who or (not top and not told and self._may_be_shorter(who)):
            return None, ""
        who = unicodedata.normalize("NFC", who)
        number, hand_in = told.get("number", ""), told.get("hand_in", "")
        participant = number or told.get("participant", "")
        if not top:
            return Owner(who, number, participant, hand_in, (*folders, who, participant)), rest
        outer = folders.index(top) + 1
        inner = tuple(part for part in folders[outer:] if part not in self.folders)
        return Owner(who, number, participant, hand_in, folders[:outer], inner), path.name

    def is_folder(self, name: str) -> bool:
        """Returns whether a folder of this name is the course's, or Gradescope's around all others."""
        return name in self.folders or OF_NOBODY.fullmatch(name) is not None

    def is_list_of_students(self, path: PurePosixPath) -> bool:
        """Returns whether this is Gradescope's list of students, which is nobody's hand-in."""
        return METADATA.fullmatch(str(path)) is not None

    def people_of(self, owner: Owner, by_folder: dict[str, list[Person]], id: str) -> list[tuple[Person, bool]]:
        """Returns whose a file is, and of each whether the roster has that student.

        Several handed in together where Gradescope says so, or the name is "ada+bob". `by_folder`: as `submitters`
        returns it. `id`: of a student whom the roster does not have.
        """
        parts = [part.strip() for part in owner.name.split("+")]
        told = by_folder.get(owner.name) or [Person(id, platform_id=owner.number)]
        if len(parts) > 1 and all(parts) and not owner.participant and self.in_roster(owner.name) is None:
            told = [Person(part) for part in parts]
        name = owner.name if len(told) == 1 else ""
        found = [(one, self._in_roster(one, name)) for one in told]
        return [(known or one, known is not None) for one, known in found]

    def _in_roster(self, one: Person, name: str) -> Person | None:
        by_number = self.in_roster(one.email) or self.in_roster(one.id, one.platform_id)
        return by_number or (self.in_roster(name) if name else None)

    def _before_exercise(self, name: str) -> tuple[str, str]:
        """Returns a file's name in two, where an exercise's begins in it, or what may be one misspelt; else ""."""
        if self.exercise_of(name):
            return "", ""
        parts = name.split("_")
        split = [("_".join(parts[:count]), "_".join(parts[count:])) for count in range(1, len(parts))]
        close = [
            (who, rest) for who, rest in split
            if difflib.get_close_matches(rest.partition(".")[0], self.exercises, 1, CLOSE)
        ]  # fmt: skip
        return next((each for each in split if self.exercise_of(each[1])), next(iter(close), ("", "")))

    def _may_be_shorter(self, who: str) -> bool:
        """Returns whether a beginning of this name is another student's: the rest may be the student's own choice."""
        parts = who.split("_")
        named = {self.in_roster("_".join(parts[:count])) for count in range(1, len(parts))}
        return bool(named - {None, self.in_roster(who)})

    def in_roster(self, name: str, number: str = "") -> Person | None:
        """Returns the student of the roster with this number on the platform or this name, however it is written."""
        for person in self.roster:
            if person.id == name or (number and person.platform_id == number):
                return person
        matching = self.of_name(name)
        return matching[0] if len(matching) == 1 else None

    def of_name(self, name: str) -> list[Person]:
        """Returns all students of the roster with this name, however it is written."""
        wanted = _letters(name)
        return [
            one
            for one in self.roster
            if wanted and wanted in {_letters(one.id), _letters(one.first + one.last), _letters(one.last + one.first),
                          _letters(one.email), _letters(one.email.partition("@")[0])}
        ]  # fmt: skip


def _letters(name: str) -> str:
    """Returns a name's letters with their marks, and its digits, alike in both ways to write a letter with a mark."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")


def is_of_platform(folder: str) -> bool:
    """Returns whether a platform names a student's folder so."""
    return any(form.fullmatch(folder) for form in (CANVAS, MOODLE, GRADESCOPE))


def copy_number(name: str) -> int:
    """Returns the number that a browser or a platform has added to the name of a further file; 0 for none."""
    file = FILE.fullmatch(name)
    found = re.search(r"([0-9]{1,9})\)?$", file["stem"]) if file else None
    return int(found[1]) if found else 0


def as_folder(name: str) -> str:
    """Returns a student's name as the name of a folder.

    Slashes and plus signs, which nbgrader would interpret, and control characters become underscores.
    """
    plain = "".join("_" if is_steering(c) else c for c in unicodedata.normalize("NFC", name))
    return re.sub(r"[/\\+]", "_", plain).lstrip(".") or "_"


def submitters(files: Iterable[File]) -> dict[str, list[Person]]:
    """Returns the students of each of Gradescope's folders, as submission_metadata.yml names them; {} where it is not.

    Raises ClickException where that file cannot be read.
    """
    import yaml  # a container that judges uploads has none

    found: dict[str, list[Person]] = {}
    for file in (each for each in files if METADATA.fullmatch(str(each.path))):
        try:
            told = yaml.safe_load(file.read())
            for folder, facts in ((key, facts) for key, facts in told.items() if GRADESCOPE.fullmatch(key)):
                people = [{str(key).lstrip(":"): str(value or "") for key, value in one.items()}
                          for one in facts.get(":submitters") or facts["submitters"]]  # fmt: skip
                found[folder] = [
                    Person(as_folder(one.get("sid") or one.get("email") or one["name"]), *_first_and_last(one["name"]),
                           one.get("email", ""))
                    for one in people
                ]  # fmt: skip
        except (yaml.YAMLError, AttributeError, KeyError, TypeError, UnicodeDecodeError):
            raise click.ClickException(
                f"{file.path} does not say whose the folders are, as Gradescope writes it. Download the export again."
            ) from None
    return found


def _first_and_last(name: str) -> tuple[str, str]:
    first, _, last = name.rpartition(" ")
    return first, last


def read_roster(path: Path) -> list[Person]:
    """Returns the students of a CSV with nbgrader's columns. Raises ClickException where it is none."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise click.ClickException(f"--roster: {path} is not UTF-8 text; save it as CSV in UTF-8.") from None
    first = text.partition("\n")[0]
    rows = list(csv.DictReader(text.splitlines(), delimiter=";" if first.count(";") > first.count(",") else ","))
    people = [Person(*((row.get(column) or "").strip() for column in COLUMNS)) for row in rows]
    if not people or not all(person.id for person in people):
        raise click.ClickException(
            f"--roster: {path} has no id for each student. A CSV with these columns was expected, of which only the "
            f"first is needed: {', '.join(COLUMNS)}."
        )
    ids = [person.id for person in people]
    if twice := sorted({id for id in ids if ids.count(id) > 1}):
        raise click.ClickException(f"--roster: {path} has {', '.join(twice)} twice. An id belongs to one student.")
    return people
