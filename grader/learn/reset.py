"""`course reset`: puts the stub back, and keeps the learner's file next to it."""

from __future__ import annotations

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder
from grader.course.regions import stub_text
from grader.files import keep_aside, write_whole


@click.command(short_help="starts an exercise anew; your file is kept")
@click.argument("exercise", type=EXERCISE, metavar="NN")
@click.option("--yes", is_flag=True, help="do not ask")
def reset(exercise: Folder, yes: bool) -> None:
    """Puts the stub back in place of your file. Your file is kept beside it, and progress.txt stays as it is.

    \b
    Example:  course reset 03
    """
    from grader.show.terminal import shown

    path = exercise.learner_file
    try:
        stub = stub_text(exercise.solution_file.read_text(encoding="utf-8"))
        if path.exists() and path.read_bytes() == stub.encode():
            click.echo(f"{shown(path)} is the stub already. Next: course open {exercise.number}")
            return
        if path.exists() and not yes:
            click.confirm(f"Replace {shown(path)} by the stub? Your file is kept next to it", abort=True)
        kept = keep_aside(path) if path.exists() else None
        write_whole(path, stub)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}. Nothing was changed.") from None
    if kept:
        click.echo(f"Your file is kept: {shown(kept)}")
    click.echo(f"{shown(path)} is the stub again. Next: course open {exercise.number}")
