"""`course open`: an exercise's lesson, rendered in the terminal."""

from __future__ import annotations

import re
import sys

import click

from grader.course.by_name import LESSON, course_root
from grader.course.folder import Folder
from grader.course.questions import QUESTIONS
from grader.progress.standing import next_exercise, none_left, read_progress

PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")


@click.command("open", short_help="the lesson, rendered in the terminal")
@click.argument("exercise", type=LESSON, required=False, metavar="[NN]")
def lesson(exercise: Folder | None) -> None:
    """Shows the lesson of an exercise in the terminal; without NN, of the next one.

    \b
    Example:  course open 03
    """
    root = course_root()
    exercise = exercise or next_exercise(root, read_progress(root))
    if exercise is None:
        raise none_left("open")
    click.echo_via_pager(_rendered(exercise), color=None if sys.stdout.isatty() else False)


def _rendered(folder: Folder) -> str:
    from rich.markdown import Markdown

    from grader.show.terminal import console, for_terminal, shown

    path = folder.lesson_file
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}.") from None
    # A terminal shows no picture: its description and its path stand there instead.
    text = PICTURE.sub(lambda match: f"*Picture: {match[1]} ({shown(folder.path / match[2])})*", text)
    out = console()
    with out.capture() as captured:
        out.print(Markdown(for_terminal(text), hyperlinks=False))
        out.print()
        out.print(_next(folder), markup=False, soft_wrap=True)
    return captured.get()


def _next(folder: Folder) -> str:
    from grader.show.terminal import shown

    asks = f"course predict {folder.number}, then " if (folder.path / QUESTIONS).exists() else ""
    if not folder.is_lesson:
        return f"Next: {asks}edit {shown(folder.learner_file)} and run pytest {shown(folder.path)}"
    following = folder.next()
    then = f"{following.id}. Read it with: course open {following.number}" if following else "course status"
    return f"Next: {asks}{then}"
