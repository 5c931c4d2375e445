"""Writes files whole or not at all, and keeps copies of files before they are overwritten."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Writes a file so that its readers, also after a crash, find the old text or all of the new. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk names no file
        raise
    finally:
        temporary.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Removes files below `folder` that processes of this machine left, killed in the middle of `write_whole`."""
    for path in folder.rglob(f".*.{os.uname().nodename}.*"):
        process = path.suffix.removeprefix(".")
        if process.isdecimal() and not Path("/proc", process).exists():
            with contextlib.suppress(PermissionError):  # another user's file
                path.unlink(missing_ok=True)


def keep_aside(path: Path) -> Path:
    """Copies a file to the first free NAME.kept1, NAME.kept2, ... in its folder. Returns the path. Raises OSError."""
    content = path.read_bytes()
    numbers = itertools.count(1)
    while True:
        kept = path.with_name(f"{path.name}.kept{next(numbers)}")
        try:
            with kept.open("xb") as file:
                file.write(content)
        except FileExistsError:
            continue
        return kept
