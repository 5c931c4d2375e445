"""Waiting in tests for events: only what never happens fails a test, not what takes longer on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

NEVER = 900.0  # seconds; every event of the tests comes within seconds where nothing else runs
BETWEEN = 0.05  # seconds from one look to the next

T = TypeVar("T")


def until(happened: Callable[[], T], seen: Callable[[], object] = lambda: "") -> T:
    """Returns the first true value of `happened()`. Raises AssertionError with `seen()` where none comes."""
    deadline = time.monotonic() + NEVER
    while not (value := happened()):
        assert time.monotonic() < deadline, f"it never happened: {seen()}"
        time.sleep(BETWEEN)
    return value
