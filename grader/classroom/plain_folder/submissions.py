"""Reads a folder of submissions in place, or a learning platform's zip: everyone's work on every exercise.

grader.classroom.names says which names are understood. STUDENT.py is one where a single exercise is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader.classroom.by_student import Sent, by_student, clash, is_unclear, unclear, why_not
from grader.classroom.handin import HandIn, clean, expected, hand_in_of, is_work
from grader.classroom.names import Names, Person
from grader.classroom.result_store import Text
from grader.classroom.sent_files import sent
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from grader.course.regions import stub_text


@dataclass
class Submissions:
    """Everyone's work on every exercise, and what names no student and exercise.

    `exercises`: the ids of those for which somebody sent a file. `people`: the students by their ids; `unknown`: those
    whom the roster does not have. `clashes`: a sentence for each exercise that a student has at several places, for
    each name that several students have, and for each folder that may be several students'. `around`: the folders that
    were taken for ones around the students' folders.
    """

    all: list[StudentWork] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    exercises: set[str] = field(default_factory=set)
    people: dict[str, Person] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    clashes: list[str] = field(default_factory=list)
    around: tuple[str, ...] = ()

    @property
    def students(self) -> list[str]:
        return sorted(self.people)


def read_submissions(
    source: Path, exercises: list[Folder], only: Sequence[Folder], without: Path, roster: Sequence[Person] = ()
) -> Submissions:
    """Returns each student's work on each exercise, and what is ignored.

    Whoever sent anything, has a folder or stands in the roster is a student. `only`: the exercises that were asked
    for, all if empty; where it is one, a file that is named for its student alone is of that exercise. `without`: a
    folder to leave out. Raises ClickException where a zip cannot be read.
    """
    names = Names((each.name for each in exercises), (each.id for each in exercises), roster)
    stubs = {each: clean(stub_text(each.solution_file.read_text(encoding="utf-8"))) for each in exercises}
    with sent(source, without) as files:
        told = by_student(files, names, only[0].name if len(only) == 1 else "")
        people = {person.id: person for person in roster} | told.people | _of_empty_folders(source, names)
        found = Submissions(
            ignored=told.ignored,
            people=people,
            unknown=told.unknown,
            clashes=[*told.twice, *told.several.values()],
            around=told.around,
        )
        sent_by: dict[str, list[Sent]] = defaultdict(list)
        for one in told.sent:
            for student in one.students:
                sent_by[student].append(one)
        for student in found.students:
            works = [_work(student, sent_by[student], each, stubs, only) for each in exercises]
            for work in works if student in told.several else ():
                work.hand_in.notes += [] if work.hand_in.absent else [told.several[student]]
            found.all += works
            for each in exercises:
                held = [one for one in sent_by[student] if one.exercise == each.name]
                found.clashes += [clash(student, unclear(held), held, told.around)] if is_unclear(held) else []
    named = {one.exercise for one in told.sent}
    found.exercises = {each.id for each in exercises if each.name in named}
    shown = [each for each in exercises if each.id in ({one.id for one in only} or found.exercises)]
    for sent_ones in sent_by.values() if shown else ():
        unnamed = [one for one in sent_ones if not one.exercise]
        told_in = [_may_be_of(each, exercises, sent_ones) for each in shown]
        found.ignored += [why_not(one) for one in unnamed if not any(one in told for told in told_in)]
    found.ignored = sorted(set(found.ignored))
    return found


def _of_empty_folders(source: Path, names: Names) -> dict[str, Person]:
    """Returns those who handed in nothing, and have an empty folder."""
    found: dict[str, Person] = {}
    for path in source.iterdir() if source.is_dir() else ():
        owner, _ = names.owner_of(PurePosixPath(path.name, "of nobody"))
        if owner and path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            found |= {person.id: person for person, _ in names.people_of(owner, {}, owner.name)}
    return found


def _work(
    student: str, sent_ones: list[Sent], exercise: Folder, stubs: dict[Folder, str], only: Sequence[Folder]
) -> StudentWork:
    """Returns a student's work on an exercise. `only`: the exercises that all that was sent is meant for, so that a
    file which names none of them is told where nothing else can be."""
    asked = {each.name for each in only}
    unnamed = [one.file for one in _in_no_other(exercise, stubs, sent_ones) if one.may_be_of(exercise.name)]
    named = [one for one in sent_ones if one.exercise == exercise.name]
    if is_unclear(named):
        hand_in = HandIn(problem=unclear(named))
    elif named:
        hand_in = hand_in_of([one.file for one in named], unnamed, exercise.name, stubs[exercise])
    else:
        inside = _in_no_other(exercise, stubs, sent_ones)
        further = [one.file for one in inside if (one.exercise or one.mentioned) not in asked]
        told = unnamed or (further if exercise.name in asked else [])
        hand_in = HandIn(problem=expected(exercise.name, told), absent=not told)
    text = None if hand_in.text is None else Text(exercise, hand_in.text, None)
    together = tuple(sorted({student for one in named for student in one.students}))
    hand_in.tell_group(together)
    return StudentWork(student=student, exercise=exercise.id, hand_in=hand_in, text=text, together=together)


def _may_be_of(exercise: Folder, exercises: Iterable[Folder], sent_ones: list[Sent]) -> list[Sent]:
    """Returns the files of a student which name no exercise and are told for this one: all where nothing else came for
    it, else those that a note tells."""
    is_there = any(one.exercise == exercise.name for one in sent_ones)
    told = [one for one in _in_no_other(exercise, exercises, sent_ones) if one.may_be_of(exercise.name)]
    return [one for one in told if not is_there or (one.mentioned and is_work(one.file))]


def _in_no_other(exercise: Folder, exercises: Iterable[Folder], sent_ones: list[Sent]) -> list[Sent]:
    """Returns the files of a student that lie in no other exercise's folder."""
    others = {each.id for each in exercises} - {exercise.id}
    return [one for one in sent_ones if not others & set(one.file.path.parts)]
