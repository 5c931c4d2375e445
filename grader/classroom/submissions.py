"""A folder of submissions, read where it lies: nbgrader's submitted/ tree, or files by student.

Understood are STUDENT/ANYTHING/softmax.py, STUDENT/softmax.py, STUDENT_softmax.py, and STUDENT.py where one exercise is
asked for; notebooks alike.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.graded import Graded
from grader.classroom.handin import HandIn, clean, read_file, read_hand_in
from grader.classroom.intake import KINDS
from grader.classroom.results import Text
from grader.exercise import Folder, stub_text


@dataclass
class Submissions:
    """Everyone's work on every exercise, and the files that name no student and exercise."""

    all: list[Graded] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    @property
    def students(self) -> list[str]:
        return sorted({one.student for one in self.all})


def read_submissions(source: Path, exercises: list[Folder], only: Folder | None, without: Path) -> Submissions:
    """`only`: the exercise that a file named for its student alone belongs to. `without`: a folder to leave out."""
    read, ignored, works = _Reader(exercises, only), [], {}
    for path in sorted(source.iterdir(), key=lambda path: (path.is_file(), path.name)):
        if path.name.startswith((".", "__MACOSX")) or path.resolve() == without.resolve():
            continue
        made = [] if path.is_symlink() else read.folder(path) if path.is_dir() else read.file(path)
        if all(one.hand_in.absent for one in made):
            ignored.append(f"{path.name}: a link" if path.is_symlink() else path.name)
        for one in made:
            earlier = works.setdefault((one.student, one.exercise), one)
            if earlier is not one and earlier.hand_in.absent:
                works[one.student, one.exercise] = one
            elif earlier is not one:
                earlier.hand_in.notes.append(f"{path.name} was not judged: there is {one.student}/ too.")
    for student in {student for student, _ in works}:
        for exercise in exercises:
            if (student, exercise.id) not in works:
                works[student, exercise.id] = read.absent(student, exercise)
    return Submissions([works[key] for key in sorted(works)], ignored)


class _Reader:
    def __init__(self, exercises: list[Folder], only: Folder | None) -> None:
        self.exercises, self.only = exercises, only
        self.stubs = {each.id: clean(stub_text(each.solution_file.read_text(encoding="utf-8"))) for each in exercises}
        self.names = tuple(each.name for each in exercises)
        by_length = sorted(self.names, key=len, reverse=True)
        self.pattern = re.compile(rf"(?P<who>.+?)_(?P<name>{'|'.join(map(re.escape, by_length))})")

    def folder(self, student: Path) -> list[Graded]:
        return [self._graded(student.name, exercise, self._in(student, exercise)) for exercise in self.exercises]

    def file(self, path: Path) -> list[Graded]:
        """STUDENT_softmax.py, or STUDENT.py; nothing for a file that is neither."""
        if path.suffix not in KINDS:
            return []
        if named := self.pattern.fullmatch(path.stem):
            exercise = next(each for each in self.exercises if each.name == named["name"])
            return [self._graded(named["who"], exercise, read_file(path))]
        if self.only and path.stem not in self.names:
            return [self._graded(path.stem, self.only, read_file(path))]
        return []

    def absent(self, student: str, exercise: Folder) -> Graded:
        problem = f"{exercise.name}.ipynb or {exercise.name}.py was expected"
        return self._graded(student, exercise, HandIn(problem=problem, absent=True))

    def _in(self, student: Path, exercise: Folder) -> HandIn:
        """The hand-in in the student's folder: in that of the exercise, of another assignment, or right there."""
        inner = sorted(path for path in student.iterdir() if path.is_dir() and not path.is_symlink())
        own = [path for path in inner if path.name == exercise.id]
        holding = [path for path in (*own, *inner, student) if _holds(path, exercise.name)]
        places = list(dict.fromkeys(holding or own or [student]))
        hand_in = read_hand_in(places[0], exercise.name, self.stubs[exercise.id], self.names)
        if len(places) > 1:
            others = ", ".join(f"{path.relative_to(student.parent)}/" for path in places[1:])
            hand_in.notes.append(f"{exercise.name} lies in {others} too; that in {places[0].name}/ was judged.")
        if places == [student] and not holding:
            hand_in.absent = True  # what else lies there belongs to other exercises, or to none
        return hand_in

    def _graded(self, student: str, exercise: Folder, hand_in: HandIn) -> Graded:
        text = None if hand_in.text is None else Text(exercise, hand_in.text, None)
        return Graded(student=student, exercise=exercise.id, hand_in=hand_in, text=text)


def _holds(folder: Path, name: str) -> bool:
    return any(os.path.lexists(folder / f"{name}{kind}") for kind in KINDS)
