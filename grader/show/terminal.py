"""The output of the commands: one console for all, made for terminals of any width and for pipes."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from grader.wire.printable import one_line, several_lines

WIDEST = 100  # columns: wider lines of prose are hard to read
NARROW = 72  # columns: in fewer, tables leave out the least important
FOLD = re.compile(r"</?details>(?:<summary>(.*?)</summary>)?")
LINK = re.compile(r"(`[^`]*`)|\[([^\]]*)\]\((?!https?:)[^)]+\)")  # or code: kernel[grid](x) is no link


class _Console(Console):
    """A console that shows text from any source: control characters in it never reach the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(several_lines(text), style)


def console() -> Console:
    """Returns a console with colours only on a terminal and without NO_COLOR. On a terminal it is at most WIDEST
    columns wide; in a pipe as wide as COLUMNS says, or WIDEST if it is no number above 0."""
    made = _Console(highlight=False, emoji=False, markup=True)
    made.width = min(made.width, WIDEST) if sys.stdout.isatty() else _columns_of_pipe()
    return made


def _columns_of_pipe() -> int:
    try:
        columns = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        return WIDEST
    return columns if columns > 0 else WIDEST


def busy(what: str) -> contextlib.AbstractContextManager:
    """Returns a context that says on a terminal what takes a moment, and is silent in a pipe."""
    return console().status(what) if sys.stdout.isatty() else contextlib.nullcontext()


def say(text: str) -> None:
    """Prints a text as one line, with line ends and control characters replaced, since names in it may hold any."""
    click.echo(one_line(text))


def for_terminal(markdown: str) -> str:
    """Returns Markdown without what a terminal cannot do: it follows no link to another page of the course, and folds
    nothing."""
    return FOLD.sub(lambda match: f"*{match[1]}*" if match[1] else "", LINK.sub(r"\1\2", markdown))


def shown(path: Path) -> str:
    """Returns a path as one line of text, relative to the current folder where that is shorter."""
    relative = os.path.relpath(path)
    return one_line(relative if len(relative) < len(str(path)) else str(path))


def ago(then: datetime | None, now: datetime) -> str:
    """Returns the time since `then` in the largest unit that fits, as "3 hours ago"; "just now" within a minute, "" for
    None."""
    if then is None:
        return ""
    seconds = int((now - then).total_seconds())
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
