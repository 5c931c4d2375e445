"""Sorts the files of an export or of a folder of submissions by their students: one rule for both.

grader.classroom.names says whom a path names. What only all paths together show is decided here: whether a folder lies
around those of the students, and whether two students have the same name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from grader.classroom.handin import OF_NBGRADER
from grader.classroom.names import Names, Owner, Person, is_of_platform, submitters
from grader.classroom.sent_files import MOST_BYTES, File
from grader.wire.printable import is_steering

MOST_NAMED = 3  # paths of a hand-in at several places
FEWEST_STUDENTS = 2  # whose folders show that the one around them is nobody's


@dataclass(frozen=True)
class Sent:
    """A file that names its student. `exercise`: the name of the exercise, and "" where it names none.

    `chosen`: the name that the student chose for the file. `students`: the ids of those whose file it is.
    """

    file: File
    owner: Owner
    chosen: str
    exercise: str
    students: tuple[str, ...]


@dataclass
class Sorted:
    """Everything that was sent. `ignored`: what names no student, each with the reason.

    `people`: the students whom files name, by id; `unknown`: those of them whom the roster does not have. `around`: the
    folder that was taken for one around the students' folders; "" for none.
    """

    sent: list[Sent] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    people: dict[str, Person] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    around: str = ""


def by_student(files: list[File], names: Names, only: str = "") -> Sorted:
    """Returns whose each file is. `only`: the exercise of a loose file that names its student alone.

    Raises ClickException where Gradescope's list of students cannot be read.
    """
    found = Sorted(around=_around(files, names))
    kept = {file: _below(file.path, found.around) for file in files}
    by_folder = submitters(replace(file, path=path) for file, path in kept.items())
    owned: list[tuple[File, Owner, str]] = []
    for file, path in kept.items():
        if path.name in OF_NBGRADER or names.is_list_of_students(path):  # a student's own would forge the time
            continue
        owner, chosen = names.owner_of(path)
        stem = path.name.partition(".")[0]
        if owner is None and only and path.suffix in (".py", ".ipynb") and not names.exercise_of(path.name):
            owner, chosen = Owner(stem, "", "", "", (stem,)), f"{only}{path.suffix}"
        if owner is None:
            found.ignored.append(f"{file.path}: {file.problem or 'it names no student'}")
        elif is_steering(path.parts[0]):  # it would be shown as another student's
            found.ignored.append(f"{file.path}: its name has control characters or line ends; name it anew")
        else:
            owned.append((file, owner, chosen))
    places = _places(owned, names)
    numbers: dict[str, set[str]] = defaultdict(set)  # of those who have the same name
    for _, owner, _ in owned:
        numbers[owner.name] |= {owner.participant} - {""}
    for file, owner, chosen in owned:
        people = names.people_of(owner, by_folder, own_id(owner, numbers[owner.name]))
        for person, is_known in people:
            found.people.setdefault(person.id, person)
            found.unknown |= set() if is_known else {person.id}
        exercise, _ = names.exercise_of(chosen) or ("", "")
        told = replace(file, turn=int(owner.hand_in or 0))
        whose = tuple(dict.fromkeys(person.id for person, _ in people))
        found.sent.append(Sent(told, replace(owner, place=places.get(file, owner.place)), chosen, exercise, whose))
    found.ignored.sort()
    return found


def own_id(owner: Owner, numbers: set[str]) -> str:
    """Returns the id of a student whom the roster does not have: the name, with a number where two have the name."""
    return f"{owner.name}_{owner.participant}" if len(numbers) > 1 and owner.participant else owner.name


def is_unclear(sent: Sequence[Sent]) -> bool:
    """Returns whether a student's files for an exercise lie at several places, of which one may be another's."""
    return len({one.owner.place for one in sent}) > 1


def unclear(sent: Sequence[Sent]) -> str:
    """Returns the sentence for a student's exercise at several places, which is taken from none of them."""
    places = [str(one.file.path) for one in sent]
    if len(places) > MOST_NAMED:
        places[MOST_NAMED - 1 :] = [f"{len(places) - MOST_NAMED + 1} more"]
    neither, listed = "neither" if len(sent) == 2 else "none", f"{', '.join(places[:-1])} and {places[-1]}"
    return f"{sent[0].exercise} was sent at several places and taken from {neither}: {listed}."


def clash(student: str, problem: str, sent: Sequence[Sent], around: str) -> str:
    """Returns the sentence of `unclear` for the instructor, with the student and what to do. `around`: the folder that
    is known to be no student's, or ""."""
    top, *others = {one.file.path.parts[0] for one in sent}
    outer = "" if others or around else f" If {top} is no student's, unpack the export, and name that folder instead."
    return f"{student}: {problem} Leave one of them in the export, then run the command again.{outer}"


def why_not(one: Sent) -> str:
    """Returns the path of a file that is nobody's hand-in though it names a student, and why it is none."""
    if one.file.size > MOST_BYTES:
        return f"{one.file.path}: it has {one.file.size >> 20} MB"
    return f"{one.file.path}: {one.file.problem or 'no .py file or notebook of an exercise is called so'}"


def _around(files: Iterable[File], names: Names) -> str:
    """Returns the only outermost folder where it is no student's, and the folders in it are those of students."""
    paths = [file.path for file in files if not file.path.is_absolute()]
    tops = {path.parts[0] for path in paths if len(path.parts) > 1} | {"" for path in paths if len(path.parts) == 1}
    top = tops.pop() if len(tops) == 1 else ""
    if not top or names.is_folder(top) or is_of_platform(top) or top.lower().endswith(".zip"):
        return ""
    if any(names.known(part.strip()) for part in (top, *top.split("+"))):
        return ""
    inner = {path.parts[1] for path in paths if len(path.parts) > 2}  # noqa: PLR2004
    students = [each for each in inner if is_of_platform(each) or names.known(each)]
    return top if len(students) >= FEWEST_STUDENTS else ""


def _below(path: PurePosixPath, around: str) -> PurePosixPath:
    return PurePosixPath(*path.parts[1:]) if around else path


def _places(owned: list[tuple[File, Owner, str]], names: Names) -> dict[File, tuple[str, ...]]:
    """Returns a place of its own for each folder in the only folder, where several in it hold the same exercise.

    The one around them may be no student's, and nothing says whose they are.
    """
    if len({owner.place for _, owner, _ in owned}) > 1:
        return {}
    held: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for _, owner, chosen in owned:
        if found := names.exercise_of(chosen):
            held[found[0]].add(owner.inner)
    if not any(len(inner) > 1 and () not in inner for inner in held.values()):
        return {}
    return {file: (*owner.place, *owner.inner) for file, owner, _ in owned}
