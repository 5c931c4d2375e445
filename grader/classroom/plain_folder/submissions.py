"""Reads a folder of submissions in place: nbgrader's submitted/ tree, or files by student.

It understands STUDENT/ANYTHING/softmax.py, STUDENT/softmax.py, STUDENT_softmax.py, and STUDENT.py where a single
exercise is asked for; notebooks alike.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.handin import HandIn, clean, is_own_work, read_file, read_hand_in
from grader.classroom.intake import KINDS
from grader.classroom.result_store import Text
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from grader.course.regions import stub_text
from grader.wire.printable import is_steering


@dataclass
class Submissions:
    """Everyone's work on every exercise, and the files and folders that name no student and exercise.

    `clashes`: what a platform's export has at several places, as Intake tells it.
    """

    all: list[StudentWork] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)

    @property
    def students(self) -> list[str]:
        return sorted({one.student for one in self.all})


@dataclass
class _Found:
    """A hand-in, the file or folder it was found in, and when the newest of its files was written."""

    work: StudentWork
    place: str
    time: float = 0

    @property
    def text(self) -> str | None:
        return self.work.text.text if self.work.text else None


def read_submissions(source: Path, exercises: list[Folder], only: Folder | None, without: Path) -> Submissions:
    """Returns each student's work on each exercise, and what is ignored.

    `only`: the exercise of a file that is named for its student alone. `without`: a folder to leave out.
    """
    paths = [path for path in source.iterdir() if not path.name.startswith((".", "__MACOSX"))]
    paths = sorted((path for path in paths if path.resolve() != without.resolve()), key=lambda p: (p.is_file(), p.name))
    read = _Reader(source, exercises, only, paths)
    ignored: list[str] = []
    found: dict[tuple[str, str], list[_Found]] = {}
    for path in paths:
        if path.is_dir() and path.is_symlink():
            ignored.append(f"{path.name}/: a link")
            continue
        if is_steering(path.name):  # it would be shown as another student's
            ignored.append(f"{path.name}: its name has control characters or line ends; name it anew")
            continue
        made, unknown = read.folder(path) if path.is_dir() else read.file(path)
        ignored += unknown
        for one in made:
            found.setdefault((one.work.student, one.work.exercise), []).append(one)
    for student in {student for student, _ in found}:
        for exercise in exercises:
            if (student, exercise.id) not in found:
                found[student, exercise.id] = [read.absent(student, exercise)]
    return Submissions([read.chosen(found[key]) for key in sorted(found)], ignored)


class _Reader:
    def __init__(self, source: Path, exercises: list[Folder], only: Folder | None, paths: list[Path]) -> None:
        self.source, self.exercises = source, exercises
        self.stubs = {each.id: clean(stub_text(each.solution_file.read_text(encoding="utf-8"))) for each in exercises}
        self.names = tuple(each.name for each in exercises)
        by_length = sorted(self.names, key=len, reverse=True)
        self.pattern = re.compile(rf"(?P<who>.+?)_(?P<name>{'|'.join(map(re.escape, by_length))})")
        named = any(path.suffix in KINDS and self.pattern.fullmatch(path.stem) for path in paths)
        self.only = None if named else only  # next to ada_softmax.py, bob_sofmax.py is no student

    def folder(self, student: Path) -> tuple[list[_Found], list[str]]:
        """Returns the hand-ins in a student's folder, and the paths of files that may be hand-ins but name no exercise.

        A folder that is no student's is named instead of its files.
        """
        places = _places(student)
        if not self._is_student(places):
            return [], [f"{student.name}/"]
        # A misnamed file in an exercise's own folder is reported as the hand-in's problem.
        others = [place for place in places if not self._is_exercise(place)]
        unknown = [path for place in others for path in _hand_ins(place) if path.stem not in self.names]
        made = [one for exercise in self.exercises for one in self._in(places, exercise)]
        return made, [str(path.relative_to(self.source)) for path in unknown]

    def _is_student(self, places: list[Path]) -> bool:
        """Returns whether a folder, given with its subfolders, is a student's.

        The folder of a student who handed in nothing is empty. A folder of other things (results, perhaps) is no
        student's. Nor is a folder that is named for an exercise: it may hold students' folders, which would count as a
        single student.
        """
        if self._is_exercise(places[0]):
            return False
        return any(self._is_exercise(each) or _hand_ins(each) for each in places) or not any(places[0].iterdir())

    def _is_exercise(self, folder: Path) -> bool:
        return any(folder.name == each.id for each in self.exercises)

    def file(self, path: Path) -> tuple[list[_Found], list[str]]:
        """Returns, as `folder` does, the hand-in in STUDENT_softmax.py or STUDENT.py, or else the file's name."""
        named = self.pattern.fullmatch(path.stem)
        if path.suffix in KINDS and named:
            exercise = next(each for each in self.exercises if each.name == named["name"])
            return [self._found(named["who"], exercise, read_file(path), path, [path])], []
        if path.suffix in KINDS and self.only and path.stem not in self.names:
            return [self._found(path.stem, self.only, read_file(path), path, [path])], []
        return [], [path.name]

    def absent(self, student: str, exercise: Folder) -> _Found:
        problem = f"{exercise.name}.ipynb or {exercise.name}.py was expected"
        return self._found(student, exercise, HandIn(problem=problem, absent=True), self.source, [])

    def chosen(self, found: list[_Found]) -> StudentWork:
        """Returns the hand-in to judge of all that a student has for an exercise.

        It is the best by three criteria, in this order: it can be read, it was worked on, it is newer. Its notes say
        why each hand-in that differs was not judged.
        """
        there = [one for one in found if not one.work.hand_in.absent] or found[:1]
        best = max(there, key=lambda one: (one.work.text is not None, self._is_own_work(one.work), one.time))
        for other in there:
            if other is not best and (other.text is None or other.text != best.text):
                best.work.hand_in.notes.append(f"{other.place} was not judged: {self._why_not(other, best)}.")
        return best.work

    def _is_own_work(self, one: StudentWork) -> bool:
        return one.text is not None and is_own_work(one.text.text, self.stubs[one.exercise])

    def _why_not(self, other: _Found, best: _Found) -> str:
        if other.work.text is None:
            return other.work.hand_in.problem
        if self._is_own_work(best.work) and not self._is_own_work(other.work):
            return f"it is the empty exercise, and {best.place} is not"
        return f"{best.place} is newer" if best.time > other.time else f"{best.place} is as new"

    def _in(self, places: list[Path], exercise: Folder) -> list[_Found]:
        """Returns the hand-ins for an exercise in a student's folder and its subfolders, the exercise's folder first.

        If there is none, returns an absent hand-in, or the problem of the exercise's folder.
        """
        student, *inner = places
        own = [place for place in inner if place.name == exercise.id]
        holding = [place for place in dict.fromkeys([*own, *inner, student]) if _held(place, exercise.name)]
        found = []
        for place in holding or own or [student]:
            files = _held(place, exercise.name)
            hand_in = read_hand_in(place, exercise.name, self.stubs[exercise.id], self.names)
            if not holding and not own:
                hand_in.absent = True  # what else lies there belongs to other exercises, or to none
            found.append(self._found(student.name, exercise, hand_in, files[0] if files else place, files))
        return found

    def _found(self, student: str, exercise: Folder, hand_in: HandIn, place: Path, files: list[Path]) -> _Found:
        text = None if hand_in.text is None else Text(exercise, hand_in.text, None)
        work = StudentWork(student=student, exercise=exercise.id, hand_in=hand_in, text=text)
        time = max((path.lstat().st_mtime for path in files), default=0)
        return _Found(work, str(place.relative_to(self.source)), time)


def _held(folder: Path, name: str) -> list[Path]:
    """Returns the paths of an exercise's files that lie in a folder, links included."""
    return [folder / f"{name}{kind}" for kind in KINDS if os.path.lexists(folder / f"{name}{kind}")]


def _places(student: Path) -> list[Path]:
    """Returns a student's folder, and the folders in it that are no links."""
    return [student, *sorted(path for path in student.iterdir() if path.is_dir() and not path.is_symlink())]


def _hand_ins(folder: Path) -> list[Path]:
    """Returns the files in a folder, and links to files, that end as a hand-in does: .py or .ipynb."""
    return sorted(
        path for path in folder.iterdir() if path.suffix in KINDS and path.name[0] != "." and not path.is_dir()
    )
