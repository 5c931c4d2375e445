"""`course new`: a small exercise that works, z = x * s, for its author to change step by step."""

from __future__ import annotations

import contextlib
import keyword
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.author.stubs import stub_of
from grader.course.folder import Folder, all_folders, all_lessons
from grader.course.questions import QUESTIONS

TEMPLATES = Path(__file__).with_name("templates")
EXERCISE_NAME = re.compile(r"\d\d_([a-z][a-z0-9]*(?:_[a-z0-9]+)*)")
IMPORTED = {"torch", "triton", "tl"}  # by a learner's file, which defines a function of the exercise's name


class CannotMake(Exception):
    """No exercise of this name can be made; the message says why, in one sentence."""


def make(root: Path, id: str) -> list[Path]:
    """Writes exercise NN_name into the course at `root`, whole or not at all. Returns the files in the order of work.

    Raises CannotMake and OSError.
    """
    _refuse_name(id)
    folder = Folder(root / "exercises" / id)
    _refuse_what_is_taken(folder)
    files = _files(folder)
    for path in files:
        if path.exists():
            raise CannotMake(f"{path.relative_to(root)} is there already: nothing was written.")
    _write(files)
    return list(files)


def _refuse_name(id: str) -> None:
    match = EXERCISE_NAME.fullmatch(id)
    if match is None:
        raise CannotMake(f"{id!r} is no name of an exercise: two digits and a name were expected, as 37_bias_residual.")
    if keyword.iskeyword(match[1]) or match[1] in IMPORTED:
        raise CannotMake(f"{match[1]!r} cannot be the name of the function that a learner writes: choose another.")


def _refuse_what_is_taken(folder: Folder) -> None:
    for other in all_folders(folder.root) + all_lessons(folder.root):
        if other.id == folder.id:
            raise CannotMake(f"{other.id} is there already: nothing was written.")
        if other.number == folder.number:
            raise CannotMake(f"The number {other.number} is that of {other.id}: choose another.")
        if other.name == folder.name:
            raise CannotMake(f"The name {other.name} is that of {other.id}: choose another.")


def _files(folder: Folder) -> dict[Path, str]:
    """Returns the texts of the new files, the solution first."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    names = {"id": folder.id, "number": folder.number, "name": folder.name, "title": _title(folder)}

    def filled(template: str) -> str:
        return templates.get_template(f"{template}.j2").render(names)

    solution = filled("solution.py")
    return {
        folder.solution_file: solution,
        folder.learner_file: stub_of(solution),
        folder.test_file: filled("test.py"),
        folder.mistakes_file: filled("mutants.toml"),
        folder.accepted_folder / "persistent_grid.py": filled("accepted.py"),
        folder.unwanted_file: filled("unwanted.py"),
        folder.path / "README.md": filled("README.md"),
        folder.path / QUESTIONS: filled("questions.toml"),
        folder.hints_file: filled("hints.md"),
    }


def _title(folder: Folder) -> str:
    return folder.name.replace("_", " ").capitalize()


def _write(files: dict[Path, str]) -> None:
    """Writes all files or none: if something fails, it removes the files and folders that it has made."""
    made: list[Path] = []
    try:
        for path, text in files.items():
            for missing in reversed([parent for parent in path.parents if not parent.exists()]):
                missing.mkdir()
                made.append(missing)
            made.append(path)
            path.write_text(text, encoding="utf-8")
    except BaseException:
        for path in reversed(made):
            with contextlib.suppress(OSError):  # what could not be made is not there
                path.rmdir() if path.is_dir() else path.unlink()
        raise
