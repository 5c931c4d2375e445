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
from grader.classroom.names import GRADESCOPE, Names, Owner, Person, is_of_platform, submitters
from grader.classroom.sent_files import MOST_BYTES, File
from grader.wire.printable import is_steering

MOST_NAMED = 3  # paths of a hand-in at several places
NOWHERE = PurePosixPath()
LIST_OF_STUDENTS = "submission_metadata.yml"  # of Gradescope's export
SENT_AS = (".py", ".ipynb", ".zip")
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
    around = _around(files, names)
    found = Sorted(around="" if around == NOWHERE else str(around))
    beside = [file for file in files if around != NOWHERE and around not in file.path.parents]
    found.ignored += [f"{one.path}: it lies beside {around}, where the students' folders are" for one in beside]
    kept = {file: _below(file.path, around) for file in files if file not in beside}
    found.ignored += [
        f"{one}: Gradescope's folders seem to lie there, and others beside it. If it is no student's, unpack the "
        "export, and name that folder instead."
        for one in sorted(gradescopes_folders(kept.values())) if not all(map(names.is_folder, one.parts))
    ]  # fmt: skip
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


def _around(files: Iterable[File], names: Names) -> PurePosixPath:
    """Returns the folder that lies around those of the students and is no student's; NOWHERE where there is none, or
    where each file tells by itself whose it is."""
    paths = [file.path for file in files if not file.path.is_absolute()]
    root = _of_gradescope(paths, names)
    return _alone(paths, names) if root is None else root


def _of_gradescope(paths: Sequence[PurePosixPath], names: Names) -> PurePosixPath | None:
    """Returns the folder of Gradescope's export, whatever lies around it; None where there is none, or it may be a
    student's."""
    roots = gradescopes_folders(paths)
    root = next(iter(roots), NOWHERE)
    if len(roots) != 1 or all(map(names.is_folder, root.parts)) or any(_may_send(one, names) for one in root.parts):
        return None
    return None if any(root not in path.parents and path.suffix.lower() in SENT_AS for path in paths) else root


def gradescopes_folders(paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    """Returns the folders that hold several named as Gradescope names those of students, or one and its list."""
    held: dict[PurePosixPath, set[str]] = defaultdict(set)
    for path in paths:
        named = [bool(GRADESCOPE.fullmatch(part)) for part in path.parts[:-1]]
        at = named.index(True) if any(named) else len(named) if path.name == LIST_OF_STUDENTS else -1
        if at >= 0:
            held[PurePosixPath(*path.parts[:at])].add(path.parts[at])
    return {root for root, inner in held.items() if len(inner) >= FEWEST_STUDENTS}


def _may_send(folder: str, names: Names) -> bool:
    """Returns whether a folder, or a zip, may be what a student sent."""
    whose = any(names.known(part.strip()) for part in (folder, *folder.split("+")))
    is_zip = folder.lower().endswith(".zip") and not names.is_folder(folder[: -len(".zip")])
    return whose or is_zip or is_of_platform(folder)


def _alone(paths: Sequence[PurePosixPath], names: Names) -> PurePosixPath:
    """Returns the only outermost folder where it is no student's, and the folders in it are those of students, or one
    folder alone around these; NOWHERE where it is not so."""
    tops = {path.parts[0] for path in paths if len(path.parts) > 1} | {"" for path in paths if len(path.parts) == 1}
    top = tops.pop() if len(tops) == 1 else ""
    if not top or names.is_folder(top) or _may_send(top, names):
        return NOWHERE
    inner = {path.parts[1] for path in paths if len(path.parts) > 2}  # noqa: PLR2004
    students = [each for each in inner if is_of_platform(each) or names.known(each)]
    if len(students) >= FEWEST_STUDENTS:
        return PurePosixPath(top)
    deeper = _alone([PurePosixPath(*path.parts[1:]) for path in paths], names)
    return top / deeper if deeper.parts else NOWHERE


def _below(path: PurePosixPath, around: PurePosixPath) -> PurePosixPath:
    return path.relative_to(around) if around in path.parents else path


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
