"""The locks of a GPU: checks of values run side by side, also with a measurement in preparation; timing runs alone.

Each GPU has two file locks in /tmp, wherever TMPDIR points. So all judges on the machine honour them, no matter who
started them, and Linux frees the locks of a process that dies.
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
POLL = 0.002  # seconds: in a class the GPU rests for half of this, whenever the lock changes hands


class GpuBusy(Exception):
    """Another judge kept the GPU for longer than LONGEST_WAIT."""


@contextlib.contextmanager
def gpu_held(uuid: str, alone: bool, limit: float = LONGEST_WAIT) -> Iterator[None]:
    """Holds the GPU, `alone` or shared with others that hold it so. Waits `limit` seconds, then raises GpuBusy."""
    with _held(FOLDER / f"course-{uuid}.lock", fcntl.LOCK_EX if alone else fcntl.LOCK_SH, limit):
        yield


@contextlib.contextmanager
def next_to_measure(uuid: str, limit: float = LONGEST_WAIT) -> Iterator[None]:
    """Holds the right to prepare the next measurement, for one process at a time: a prepared one takes gigabytes.

    Waits `limit` seconds, then raises GpuBusy.
    """
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
    """Returns a descriptor of the lock's file, which is made if it is missing.

    Opens it without O_CREAT first: in a folder that all may write to, Linux refuses O_CREAT for another user's file.
    """
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
