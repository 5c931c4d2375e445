"""The files of an exercise, and the path through the exercises of a course."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from grader.places import COURSE

FOLDER_NAME = re.compile(r"\d\d_[a-z0-9_]+")
LAID_DOWN = ".laid_down.json"  # at the top of a learner's own folder: what `course init` laid there
ROW = re.compile(r"^\| \[(\d\d_[a-z0-9_]+)\]", re.MULTILINE)  # of an exercise, in the table of course.md


@dataclass(frozen=True)
class Folder:
    """The folder of exercise NN_name, and where its files lie; `path` is exercises/NN_name."""

    path: Path

    @classmethod
    def containing(cls, path: Path) -> Folder | None:
        """Returns the exercise folder that `path` is or lies in, told by its name; None where there is none."""
        path = path.resolve()
        for folder in (path, *path.parents):
            if FOLDER_NAME.fullmatch(folder.name) and folder.parent.name == "exercises":
                return cls(folder)
        return None

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def number(self) -> str:
        return self.id[:2]

    @property
    def name(self) -> str:
        return self.id[3:]

    @property
    def root(self) -> Path:
        return self.path.parent.parent

    @property
    def source(self) -> Path:
        """The course with the solutions, mutants and accepted kernels: this course, or the course it was laid down
        from."""
        return COURSE if (self.root / LAID_DOWN).exists() else self.root

    @property
    def learner_file(self) -> Path:
        return self.path / f"{self.name}.py"

    @property
    def test_file(self) -> Path:
        return self.path / f"test_{self.name}.py"

    @property
    def solution_file(self) -> Path:
        return self.source / "solutions" / self.id / f"{self.name}.py"

    @property
    def solution_files(self) -> list[Path]:
        """The solution, and others that are to be as good."""
        return [path for path in sorted(self.solution_file.parent.glob("*.py")) if path != self.unwanted_file]

    @property
    def accepted_folder(self) -> Path:
        """Right kernels that look different from the solution."""
        return self.solution_file.parent / "accepted"

    @property
    def mistakes_file(self) -> Path:
        """Wrong kernels, as changes to the solution."""
        return self.solution_file.parent / "mistakes.toml"

    @property
    def mistakes_folder(self) -> Path:
        """Wrong kernels that are no changes to the solution."""
        return self.solution_file.parent / "mistakes"

    @property
    def unwanted_file(self) -> Path:
        """The version that the gate has to refuse, as fast as it can be."""
        return self.solution_file.parent / "unwanted.py"

    @property
    def hints_file(self) -> Path:
        return self.root / "hints" / f"{self.id}.md"

    @property
    def lesson_file(self) -> Path:
        return self.path / "README.md"

    @property
    def is_exercise(self) -> bool:
        """True where there is a test file."""
        return self.test_file.exists()

    @property
    def is_lesson(self) -> bool:
        """True for a lesson to read: it has a text, and nothing to edit or to judge."""
        return self.lesson_file.exists() and not self.learner_file.exists() and not self.is_exercise

    def next(self) -> Folder | None:
        """Returns the exercise after this one on the path through the course; None after the last."""
        path = _on_the_path(self.root)
        here = next((place for place, folder in enumerate(path) if folder.id == self.id), len(path))
        return next((folder for folder in path[here + 1 :] if folder.is_exercise), None)

    def submission_file(self, submission: str | None) -> Path:
        """Returns the file to grade. `submission`: None for the learner's file, "solutions", a .py file, or a folder
        that holds NN_name/NAME.py or NAME.py."""
        if submission is None:
            return self.learner_file
        if submission == "solutions" and (self.source != self.root or not Path(submission).is_dir()):
            return self.solution_file
        path = Path(os.path.realpath(submission))  # resolve() raises on links in a circle
        if not path.is_dir():
            return path
        nested = path / self.id / f"{self.name}.py"
        beside = path / f"{self.name}.py"
        return beside if beside.exists() and not nested.exists() else nested


def all_folders(root: Path) -> list[Folder]:
    """Returns every exercise of the course at `root`, in the order of its path."""
    return [folder for folder in _on_the_path(root) if folder.is_exercise]


def all_lessons(root: Path) -> list[Folder]:
    """Returns every lesson without an exercise of the course at `root`, in the order of its path."""
    return [folder for folder in _on_the_path(root) if folder.is_lesson]


def said_of_lesson(lesson: Folder) -> str:
    """Returns the sentence for a command that needs an exercise and got a lesson to read."""
    following = lesson.next()
    then = f" Next: {following.id}" if following else ""
    return f"{lesson.number} is a lesson to read: {lesson.lesson_file.relative_to(lesson.root)}.{then}"


def _on_the_path(root: Path) -> list[Folder]:
    folders = [Folder(path) for path in sorted((root / "exercises").glob("[0-9][0-9]_*")) if path.is_dir()]
    place = {id: place for place, id in enumerate(path_of(root))}
    return sorted(folders, key=lambda folder: place.get(folder.id, len(place)))


def path_of(root: Path) -> list[str]:
    """Returns the path through the course: the ids in the rows of course.md, in order; [] where it cannot be read.
    Exercises without a row are not in it; they follow by number."""
    try:
        text = (root / "course.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return ROW.findall(text)


def found_here(folder: Folder) -> Folder:
    """Returns this exercise; where the folder is another machine's and not shared, the same exercise of this course."""
    return folder if folder.test_file.exists() else Folder(COURSE / "exercises" / folder.id)


def load_test_file(folder: Folder) -> ModuleType:
    """Imports an exercise's test file, which is ours and not the learner's, and returns the module. Raises ImportError
    for a file that is no Python file."""
    spec = importlib.util.spec_from_file_location(f"tests_of_{folder.id}", folder.test_file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder.test_file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
