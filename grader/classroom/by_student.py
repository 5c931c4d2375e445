"""Sorts the files of an export or of a folder of submissions by their students: one rule for both.

grader.classroom.names says whom a path names. What only all paths together show is decided here: whether a folder lies
around those of the students, and whether two students have the same name.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from grader.classroom.handin import OF_NBGRADER
from grader.classroom.names import GRADESCOPE, Names, Owner, Person, is_of_platform, submitters
from grader.classroom.sent_files import HIDDEN, MOST_BYTES, File
from grader.wire.printable import is_steering

MOST_NAMED = 3  # paths of a hand-in at several places
NOWHERE = PurePosixPath()
LIST_OF_STUDENTS = "submission_metadata.yml"  # of Gradescope's export
SENT_AS = (".py", ".ipynb", ".zip")
FEWEST_STUDENTS = 2  # whose folders show that the one around them is nobody's


@dataclass(frozen=True)
class Sent:
    """A file that names its student. `exercise`: the name of the exercise, and "" where it names none.

    `chosen`: the name that the student chose for the file. `students`: the ids of those whose file it is. `mentioned`:
    an exercise whose name is part of that of a file which names none.
    """

    file: File
    owner: Owner
    chosen: str
    exercise: str
    students: tuple[str, ...]
    mentioned: str = ""

    def may_be_of(self, exercise: str) -> bool:
        """Returns whether the file may be meant for this exercise, though it names none."""
        return not self.exercise and self.mentioned in ("", exercise)


@dataclass
class Sorted:
    """Everything that was sent. `ignored`: what names no student, each with the reason.

    `people`: the students whom files name, by id; `unknown`: those of them whom the roster does not have. `around`: the
    folders that were taken for ones around the students' folders. `twice`: a sentence for each student who is unknown
    because the roster has several of that name; `several`: for each whose folder may be several students', by id.
    """

    sent: list[Sent] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    people: dict[str, Person] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    around: tuple[str, ...] = ()
    twice: list[str] = field(default_factory=list)
    several: dict[str, str] = field(default_factory=dict)


def by_student(files: list[File], names: Names, only: str = "") -> Sorted:
    """Returns whose each file is. `only`: the exercise of a loose file that names its student alone.

    Raises ClickException where Gradescope's list of students cannot be read.
    """
    paths = [file.path for file in files if not file.path.is_absolute()]
    root = _of_gradescope(paths, names)
    around = _holding_students(paths, names) if root is None else {root} - {NOWHERE}
    found = Sorted(around=tuple(sorted(str(each) for each in around if not _is_outer(each, around))))
    beside = [file for file in files if root and root != NOWHERE and root not in file.path.parents]
    found.ignored += [f"{one.path}: it lies beside {root}, where the students' folders are" for one in beside]
    outer = {file: _outer(file.path, around) for file in files if file not in beside}
    kept = {file: _below(file.path, folder) for file, folder in outer.items()}
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
        if owner is None and all(map(names.is_folder, path.parts[:-1])) and names.in_roster(stem):
            owner, chosen = Owner(stem, "", "", "", (*path.parts[:-1], stem)), path.name  # told in the student's row
        if owner is None:
            found.ignored.append(f"{file.path}: {file.problem or 'it names no student'}")
        elif is_steering(path.parts[0]):  # it would be shown as another student's
            found.ignored.append(f"{file.path}: its name has control characters or line ends; name it anew")
        else:
            owner = replace(owner, place=(*outer[file].parts, *owner.place))
            owned.append((file, owner, chosen))
    places, several = _places(owned, names), _may_be_several(owned, names)
    numbers: dict[str, set[str]] = defaultdict(set)  # of those who have the same name
    for _, owner, _ in owned:
        numbers[owner.name] |= {owner.participant} - {""}
    for file, owner, chosen in owned:
        people = names.people_of(owner, by_folder, own_id(owner, numbers[owner.name]))
        for person, is_known in people:
            found.people.setdefault(person.id, person)
            found.unknown |= set() if is_known else {person.id}
            found.several |= {person.id: several[owner.place]} if owner.place in several else {}
            of_name = [] if is_known else [one.id for one in names.of_name(owner.name)]
            if len(of_name) > 1 and (line := _of_several(person.id, of_name)) not in found.twice:
                found.twice.append(line)
        exercise, _ = (file.problem != HIDDEN and names.exercise_of(chosen)) or ("", "")
        told = replace(file, turn=int(owner.hand_in or 0))
        whose = tuple(dict.fromkeys(person.id for person, _ in people))
        mentioned = "" if exercise else names.mentioned_in(chosen)
        placed = replace(owner, place=places.get(file, owner.place))
        found.sent.append(Sent(told, placed, chosen, exercise, whose, mentioned))
    found.ignored.sort()
    return found


def own_id(owner: Owner, numbers: set[str]) -> str:
    """Returns the id of a student whom the roster does not have: the name, with a number where two have the name."""
    return f"{owner.name}_{owner.participant}" if len(numbers) > 1 and owner.participant else owner.name


def _of_several(student: str, ids: Sequence[str]) -> str:
    return (
        f"{student}: the list of students has {len(ids)} of this name, {' and '.join(ids)}, and nothing says which of "
        "them it is. Name the folder or the file by the student's id, then run the command again."
    )


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


def clash(student: str, problem: str, sent: Sequence[Sent], around: Sequence[str]) -> str:
    """Returns the sentence of `unclear` for the instructor, with the student and what to do. `around`: the folders that
    are known to be no student's."""
    shared = PurePosixPath(*os.path.commonprefix([one.file.path.parts[:-1] for one in sent]))
    is_known = shared == NOWHERE or any(PurePosixPath(each).is_relative_to(shared) for each in around)
    outer = f" If {shared} is no student's, move the folders in it out of it, or give a list of the students."
    return (
        f"{student}: {problem} Leave one of them in the export, then run the command again.{'' if is_known else outer}"
    )


def why_not(one: Sent) -> str:
    """Returns the path of a file that is nobody's hand-in though it names a student, and why it is none."""
    if one.file.size > MOST_BYTES:
        return f"{one.file.path}: it has {one.file.size >> 20} MB"
    return f"{one.file.path}: {one.file.problem or 'no .py file or notebook of an exercise is called so'}"


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
    whose = any(names.in_roster(part.strip()) for part in (folder, *folder.split("+")))
    is_zip = folder.lower().endswith(".zip") and not names.is_folder(folder[: -len(".zip")])
    return whose or is_zip or is_of_platform(folder)


def _holding_students(paths: Iterable[PurePosixPath], names: Names) -> set[PurePosixPath]:
    """Returns the folders that are no student's and hold those of several students whom the roster has, with the
    folders around these.

    Where an outermost folder lies alone, the names that platforms give to students' folders show it too. Beside others
    they do not: it may be one student's, who would send in the name of all.
    """
    held: dict[str, list[PurePosixPath]] = defaultdict(list)
    for path in paths:
        top = path.parts[0] if len(path.parts) > 1 else ""
        held[top].append(path.relative_to(top))
    found: set[PurePosixPath] = set()
    for top, inner in held.items():
        if not top or names.is_folder(top) or _may_send(top, names):
            continue
        folders = {path.parts[0] for path in inner if len(path.parts) > 1}
        students = [each for each in folders if _is_known(each, names) or (len(held) == 1 and is_of_platform(each))]
        deeper = _holding_students(inner, names) if len(held) == 1 else set()
        if len(students) >= FEWEST_STUDENTS or deeper:
            found |= {PurePosixPath(top), *(top / each for each in deeper)}
    return found


def _is_known(folder: str, names: Names) -> bool:
    """Returns whether the roster has the student, or one of the group, whom a folder or a zip names."""
    owner, _ = names.owner_of(PurePosixPath(folder, "of nobody"))
    return owner is not None and any(is_known for _, is_known in names.people_of(owner, {}, owner.name))


def _is_outer(folder: PurePosixPath, around: set[PurePosixPath]) -> bool:
    return any(folder in each.parents for each in around)


def _outer(path: PurePosixPath, around: set[PurePosixPath]) -> PurePosixPath:
    """Returns the innermost of these folders in which a file lies; NOWHERE where it lies in none."""
    return next((each for each in path.parents if each in around), NOWHERE)


def _below(path: PurePosixPath, around: PurePosixPath) -> PurePosixPath:
    return path.relative_to(around) if around in path.parents else path


def _places(owned: list[tuple[File, Owner, str]], names: Names) -> dict[File, tuple[str, ...]]:
    """Returns a place of its own for each folder in one that may be no student's, where several hold the same exercise:
    nothing says whose they are.

    It may be no student's where it is the only one, or neither the roster nor a platform names it.
    """
    is_only = len({owner.place for _, owner, _ in owned}) == 1
    held: dict[tuple[tuple[str, ...], str], set[tuple[str, ...]]] = defaultdict(set)
    for _, owner, chosen in owned:
        if found := names.exercise_of(chosen):
            held[owner.place, found[0]].add(owner.inner)
    torn = {
        place for (place, _), inner in held.items()
        if len(inner) > 1 and () not in inner and (is_only or _may_be_no_students(place, names))
    }  # fmt: skip
    return {file: (*owner.place, *owner.inner) for file, owner, _ in owned if owner.place in torn}


def _may_be_no_students(place: tuple[str, ...], names: Names) -> bool:
    return not (_is_known(place[-1], names) or is_of_platform(place[-1]))


def _may_be_several(owned: list[tuple[File, Owner, str]], names: Names) -> dict[tuple[str, ...], str]:
    """Returns a sentence for each place that may be several students', each with an exercise of another name: nothing
    is taken from anybody, since one student may have made a folder for each exercise.

    Folders that others have too, as `part 1`, and those that are called after an exercise are no students'.
    """
    held: dict[tuple[str, ...], dict[tuple[str, ...], set[str]]] = defaultdict(lambda: defaultdict(set))
    for _, owner, chosen in owned:
        if found := names.exercise_of(chosen):
            held[owner.place][owner.inner].add(found[0])
    common = Counter(inner for by_folder in held.values() for inner in by_folder)
    told: dict[tuple[str, ...], str] = {}
    for place, by_folder in held.items():
        exercises = [name for several in by_folder.values() for name in several]
        is_own = any(common[one] > 1 or not one or names.mentioned_in("".join(one)) for one in by_folder)
        is_torn = len(exercises) > len(set(exercises))
        if len(by_folder) > 1 and not is_own and not is_torn and (len(held) == 1 or _may_be_no_students(place, names)):
            lie = ", ".join(
                f"{' and '.join(sorted(which))} in {'/'.join(one)}" for one, which in sorted(by_folder.items())
            )
            told[place] = (
                f"{'/'.join(place)} was taken for one student's folder: {lie}. If these are several students', move "
                "their folders out of it, or give a list of the students."
            )
    return told
