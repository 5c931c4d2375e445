"""Single keys from a terminal, without waiting for Enter; in the end the terminal has its own settings again."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator

ReadKey = Callable[[float], str]


@contextlib.contextmanager
def single_keys() -> Iterator[ReadKey]:
    """Yields a function that waits at most this many seconds for a key and returns it, or "" if there was none.

    The function raises EOFError when the terminal is gone.
    """
    if not sys.stdin.isatty():
        yield _no_key
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield lambda seconds: _key(descriptor, seconds)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _key(descriptor: int, seconds: float) -> str:
    ready, _, _ = select.select([descriptor], [], [], seconds)
    if not ready:
        return ""
    try:
        typed = os.read(descriptor, 64)
    except OSError:
        typed = b""
    if not typed:  # the terminal is gone
        raise EOFError
    return typed.decode("utf-8", "replace")[:1].lower()


def _no_key(seconds: float) -> str:
    time.sleep(seconds)
    return ""
