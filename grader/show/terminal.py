"""How the commands look: one console for all, made for terminals of any width and for pipes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from grader.wire.printable import one_line, several_lines

WIDEST = 100  # lines of prose; wider ones are hard to read
NARROW = 72  # below it, tables leave out what can be missed


class _Console(Console):
    """A console that shows texts whoever wrote them: they give the terminal no orders."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(several_lines(text), style)


def console() -> Console:
    """Colours only on a terminal and without NO_COLOR; lines of a pipe are as wide as a table may get."""
    made = _Console(highlight=False, emoji=False, markup=True)
    made.width = min(made.width, WIDEST) if sys.stdout.isatty() else int(os.environ.get("COLUMNS", WIDEST))
    return made


def busy(what: str) -> contextlib.AbstractContextManager:
    """Says on a terminal that something takes a moment; silent in a pipe."""
    return console().status(what) if sys.stdout.isatty() else contextlib.nullcontext()


def say(text: str) -> None:
    """Prints one line, whatever names stand in it."""
    click.echo(one_line(text))


def shown(path: Path) -> str:
    """A path relative to the current folder where that is shorter."""
    relative = os.path.relpath(path)
    return one_line(relative if len(relative) < len(str(path)) else str(path))


def ago(then: datetime | None, now: datetime) -> str:
    """ "3 hours ago", in the largest unit that fits."""
    if then is None:
        return ""
    seconds = int((now - then).total_seconds())
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
