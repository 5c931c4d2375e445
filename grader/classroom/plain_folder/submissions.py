"""Reads a folder of submissions in place, or a learning platform's zip: everyone's work on every exercise.

grader.classroom.names says which names are understood. STUDENT.py is one where a single exercise is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from grader.classroom.handin import OF_NBGRADER, HandIn, clean, expected, hand_in_of
from grader.classroom.names import METADATA, Names, Owner, Person, submitters
from grader.classroom.result_store import Text
from grader.classroom.sent_files import File, sent
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from grader.course.regions import stub_text
from grader.wire.printable import is_steering


@dataclass
class Submissions:
    """Everyone's work on every exercise, and what names no student and exercise.

    `exercises`: the ids of those for which somebody sent a file. `people`: the students by their names on the platform.
    """

    all: list[StudentWork] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    exercises: set[str] = field(default_factory=set)
    people: dict[str, Person] = field(default_factory=dict)

    @property
    def students(self) -> list[str]:
        return sorted(self.people)


@dataclass
class _Sent:
    """All that a student sent: files by the name of their exercise, and such that name none."""

    named: dict[str, list[File]] = field(default_factory=lambda: defaultdict(list))
    unnamed: list[File] = field(default_factory=list)
    together: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # with whom, by exercise


def read_submissions(
    source: Path, exercises: list[Folder], only: Folder | None, without: Path, roster: Sequence[Person] = ()
) -> Submissions:
    """Returns each student's work on each exercise, and what is ignored.

    Whoever sent anything, has a folder or stands in the roster is a student. `only`: the exercise of a file that is
    named for its student alone. `without`: a folder to leave out. Raises ClickException where a zip cannot be read.
    """
    names = Names((each.name for each in exercises), (each.id for each in exercises), roster)
    found = Submissions(people={person.id: person for person in roster})
    with sent(source, without) as files:
        by_student = _by_student(files, names, only, found)
        for path in source.iterdir() if source.is_dir() else ():
            owner, _ = names.owner_of(PurePosixPath(path.name, "of nobody"))
            if owner and path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
                for id in _ids(owner, names, {}, {}, found):
                    by_student[id]  # who handed in nothing has an empty folder
        stubs = {each: clean(stub_text(each.solution_file.read_text(encoding="utf-8"))) for each in exercises}
        for student in found.students:
            found.all += [_work(student, by_student[student], each, stubs) for each in exercises]
    found.exercises = {each.id for each in exercises for one in by_student.values() if each.name in one.named}
    for one in by_student.values():
        found.ignored += [str(file.path) for file in one.unnamed if one.named]
    return found


def _by_student(files: list[File], names: Names, only: Folder | None, found: Submissions) -> defaultdict[str, _Sent]:
    """Sorts the files by the ids of their students, and adds the students to `found`, and what names none."""
    by_folder = submitters(files)
    owned: list[tuple[Owner, str, File]] = []
    numbers: dict[str, set[str]] = defaultdict(set)  # of those who have the same name
    for file in files:
        owner, chosen = names.owner_of(file.path)
        stem = file.path.name.partition(".")[0]
        if owner is None and only and file.path.suffix in (".py", ".ipynb") and not names.exercise_of(file.path.name):
            owner, chosen = Owner(stem, "", "", "", (stem,)), f"{only.name}{file.path.suffix}"
        if owner is None and not METADATA.fullmatch(str(file.path)):
            found.ignored.append(f"{file.path}{f': {file.problem}' if file.problem else ''}")
        elif owner and is_steering(file.path.parts[0]):  # it would be shown as another student's
            found.ignored.append(f"{file.path}: its name has control characters or line ends; name it anew")
        elif owner and file.path.name not in OF_NBGRADER:
            owned.append((owner, chosen, file))
            numbers[owner.name] |= {owner.participant} - {""}
    by_student: defaultdict[str, _Sent] = defaultdict(_Sent)
    for owner, chosen, file in owned:
        name, _ = names.exercise_of(chosen) or ("", "")
        ids = _ids(owner, names, numbers, by_folder, found)
        for id in ids:
            sent_by = by_student[id]
            sent_by.together[name] |= set(ids)
            (sent_by.named[name] if name else sent_by.unnamed).append(replace(file, turn=int(owner.hand_in or 0)))
    return by_student


def _ids(
    owner: Owner,
    names: Names,
    numbers: dict[str, set[str]],
    by_folder: dict[str, list[Person]],
    found: Submissions,
) -> list[str]:
    """Returns the ids of those whose files these are, and adds them to `found`.

    `numbers`: of those who have the same name; they get them with it. `by_folder`: as Gradescope tells them.
    """
    alone = len(numbers.get(owner.name, ())) < 2 or not owner.participant
    own_id = owner.name if alone else f"{owner.name}_{owner.participant}"
    people = [person for person, _ in names.people_of(owner, by_folder, own_id)]
    for person in people:
        found.people.setdefault(person.id, person)
    return [person.id for person in people]


def _work(student: str, by: _Sent, exercise: Folder, stubs: dict[Folder, str]) -> StudentWork:
    others = {each.id for each in stubs} - {exercise.id}
    unnamed = [file for file in by.unnamed if not others & set(file.path.parts)]
    if exercise.name in by.named:
        hand_in = hand_in_of(by.named[exercise.name], unnamed, exercise.name, stubs[exercise])
    else:  # a file that names no exercise may be meant for this one, unless others are named
        meant = [file for file in unnamed if not by.named or exercise.id in file.path.parts]
        hand_in = HandIn(problem=expected(exercise.name, unnamed), absent=not meant)
    text = None if hand_in.text is None else Text(exercise, hand_in.text, None)
    together = tuple(sorted(by.together.get(exercise.name, ())))
    if len(together) > 1:
        hand_in.notes.append(f"Handed in together by {', '.join(together)}.")
    return StudentWork(student=student, exercise=exercise.id, hand_in=hand_in, text=text, together=together)
