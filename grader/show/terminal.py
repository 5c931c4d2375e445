"""How the commands look: one console for all, made for terminals of any width and for pipes."""

from __future__ import annotations

import contextlib
import os
import sys
from datetime import datetime
from pathlib import Path

from rich.console import Console

WIDEST = 100  # lines of prose; wider ones are hard to read
NARROW = 72  # below it, tables leave out what can be missed


def console() -> Console:
    """Colours only on a terminal and without NO_COLOR; lines of a pipe are as wide as a table may get."""
    made = Console(highlight=False, emoji=False, markup=True)
    made.width = min(made.width, WIDEST) if sys.stdout.isatty() else int(os.environ.get("COLUMNS", WIDEST))
    return made


def busy(what: str) -> contextlib.AbstractContextManager:
    """Says on a terminal that something takes a moment; silent in a pipe."""
    return console().status(what) if sys.stdout.isatty() else contextlib.nullcontext()


def shown(path: Path) -> str:
    """A path relative to the current folder where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


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
