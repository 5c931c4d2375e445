"""Keeps a class's folder for one `course grade` at a time. The system gives it free, also after a kill.

Two at once would judge everything twice, and remove what the other one has just written.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import getpass
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click

NAME = ".course_grade"
HELD = (errno.EACCES, errno.EAGAIN)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Holds the folder. Raises ClickException, which says who holds it, where another one does."""
    with (folder / NAME).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in HELD:  # a share without locks
                yield
                return
            file.seek(0)
            raise click.ClickException(
                f"{folder} is being graded, {file.read().strip() or 'by somebody'}. Two at once would undo each "
                "other's work. Nothing was graded. Next: wait for it, then run the same command."
            ) from None
        file.truncate(0)
        file.write(
            f"by {_who()} on {os.uname().nodename}, process {os.getpid()}, since {datetime.now():%Y-%m-%d %H:%M}\n"
        )
        file.flush()
        yield


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"user {os.getuid()}"
