"""Who may use a GPU when: checks of values side by side, the next measurement prepared among them, timing alone.

Two file locks per GPU in /tmp, wherever TMPDIR points: every judge on the machine honours them, whoever started it, and
the kernel frees those of a process that dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("/tmp")
LONGEST_WAIT = 600.0  # seconds; a judge holds the GPU for less than 10
POLL = 0.002  # seconds: in a class the GPU rests for half of it, whenever it changes hands


class GpuBusy(Exception):
    """Another judge kept the GPU for longer than LONGEST_WAIT."""


@contextlib.contextmanager
def gpu_held(uuid: str, alone: bool, limit: float = LONGEST_WAIT) -> Iterator[None]:
    """Raises GpuBusy."""
    with _held(FOLDER / f"course-{uuid}.lock", fcntl.LOCK_EX if alone else fcntl.LOCK_SH, limit):
        yield


@contextlib.contextmanager
def next_to_measure(uuid: str, limit: float = LONGEST_WAIT) -> Iterator[None]:
    """One at a time: a measurement that is prepared takes gigabytes. Raises GpuBusy."""
    with _held(FOLDER / f"course-{uuid}.next.lock", fcntl.LOCK_EX, limit):
        yield


@contextlib.contextmanager
def _held(path: Path, kind: int, limit: float) -> Iterator[None]:
    descriptor = _opened(path)
    try:
        deadline = time.monotonic() + limit
        while not _taken(descriptor, kind):
            if time.monotonic() > deadline:
                raise GpuBusy(f"another judge has kept the GPU for {limit:.0f} s")
            time.sleep(POLL)
        yield
    finally:
        os.close(descriptor)  # and with it the lock


def _opened(path: Path) -> int:
    """Without O_CREAT first: in a folder that all may write, Linux refuses it for a file of another user."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644))
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _taken(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
