"""Waiting in tests for events: only what never happens fails a test, not what takes longer on a busy machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

NEVER = 900.0  # seconds; every event of the tests comes within seconds where nothing else runs
BETWEEN = 0.05  # seconds from one look to the next

T = TypeVar("T")


def is_in(folder: Path, name: str) -> bool:
    """Returns whether a file of this name is somewhere below the folder, in which others come and go."""
    return any(name in files for _, _, files in os.walk(folder))


def until(happened: Callable[[], T], seen: Callable[[], object] = lambda: "") -> T:
    """Returns the first true value of `happened()`. Raises AssertionError with `seen()` where none comes."""
    deadline = time.monotonic() + NEVER
    while not (value := happened()):
        assert time.monotonic() < deadline, f"it never happened: {seen()}"
        time.sleep(BETWEEN)
    return value
