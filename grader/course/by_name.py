"""Finds the course and the exercise that a command line names: "3", "03", "softmax", "soft" or "03_softmax"."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import IO

import click

from grader.course.folder import LAID_DOWN, Folder, all_folders, all_lessons, said_of_lesson
from grader.places import COURSE, is_installed

NO_COURSE = "There is no course here. Next: cd into the folder that holds it, or lay one down: course init my-course"


class LessonToRead(click.ClickException):
    """Raised where a command needs an exercise and the named lesson has none; shown as a message, not as an error."""

    def __init__(self, lesson: Folder) -> None:
        super().__init__(said_of_lesson(lesson))

    def show(self, file: IO[str] | None = None) -> None:
        click.echo(self.message, file=file)


def course_here() -> Path | None:
    """Returns the course that the current folder lies in; None where it lies in none."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if _is_course(folder)), None)


def course_root() -> Path:
    """Returns the course that the current folder lies in; else the clone that this package belongs to.

    An installed package is no learner's own folder and does not count: progress has no place there. Raises
    click.ClickException where there is no course.
    """
    root = course_here() or (COURSE if _is_course(COURSE) and not is_installed() else None)
    if root is None:
        raise click.ClickException(NO_COURSE)
    return root


def _is_course(folder: Path) -> bool:
    laid_down = (folder / "solutions").is_dir() or (folder / LAID_DOWN).exists()
    return (folder / "exercises").is_dir() and laid_down


def chosen(texts: tuple[str, ...]) -> list[Folder]:
    """Returns the exercises named by number, name or prefix; all exercises where none is named. Raises as
    exercise_named."""
    root = course_root()
    return [exercise_named(root, text) for text in texts] if texts else all_folders(root)


def exercise_named(root: Path, text: str) -> Folder:
    """Returns the exercise that `text` names. Raises click.ClickException where it names none, or several, and
    LessonToRead where it names a lesson without an exercise."""
    folder = one_of(_to_open(root), text)
    if folder.is_lesson:
        raise LessonToRead(folder)
    return folder


def _to_open(root: Path) -> list[Folder]:
    return sorted(all_lessons(root) + all_folders(root), key=lambda folder: folder.id)


def one_of(folders: list[Folder], text: str) -> Folder:
    """Returns the folder that `text` names by its number, name or prefix. Raises click.ClickException with the nearest
    names where `text` names none, or several."""
    wanted = text.strip().rstrip("/").lower()
    wanted = wanted.zfill(2) if wanted.isdigit() else wanted
    exact = [f for f in folders if wanted in (f.number, f.name, f.id)]
    matching = exact or [f for f in folders if wanted and (f.id.startswith(wanted) or f.name.startswith(wanted))]
    if len(matching) == 1:
        return matching[0]
    names = [n for f in folders for n in (f.id, f.name)]
    near = [f.id for f in matching] or difflib.get_close_matches(wanted, names, 3, 0.4)
    near = list(dict.fromkeys(next(f.id for f in folders if name in (f.id, f.name)) for name in near))
    also = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(f.number for f in folders)}."
    what = "Several exercises begin with" if matching else "No exercise is called"
    raise click.ClickException(f"{what} {text!r}. {also}")


class ExerciseName(click.ParamType):
    """The click type of a command's NN: converts it to a Folder, and completes it in the shell. `with_lessons`: lessons
    without an exercise are accepted too."""

    name = "NN"

    def __init__(self, with_lessons: bool = False) -> None:
        self.with_lessons = with_lessons

    def convert(self, value, param, ctx):
        if isinstance(value, Folder):
            return value
        root = course_root()
        return one_of(_to_open(root), value) if self.with_lessons else exercise_named(root, value)

    def shell_complete(self, ctx, param, incomplete):
        from click.shell_completion import CompletionItem

        begins = incomplete.zfill(2) if incomplete.isdigit() and len(incomplete) == 2 else incomplete
        folders = (_to_open if self.with_lessons else all_folders)(course_root())
        return [CompletionItem(f.id) for f in folders if f.id.startswith(begins) or f.name.startswith(begins)]


EXERCISE = ExerciseName()
LESSON = ExerciseName(with_lessons=True)
