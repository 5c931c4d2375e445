"""Waits for a network share that is away for a minute. Any other error with a file is raised at once."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

MOST_SECONDS = 600
AWAY = {
    errno.ECONNREFUSED, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EIO, errno.ENETDOWN, errno.ENETUNREACH, errno.ENODEV,
    errno.ENOENT, errno.ENOTCONN, errno.ENXIO, errno.EREMOTEIO, errno.ESTALE, errno.ETIMEDOUT,
}  # fmt: skip

T = TypeVar("T")


def is_away(error: OSError) -> bool:
    """Returns whether an error may come from a share that will be back.

    A missing folder counts: an unmounted share looks the same.
    """
    return error.errno in AWAY


def patiently(act: Callable[[], T], note: Callable[[str], None]) -> T:
    """Returns what `act` returns. While a share is away, passes a message to `note` and tries again, for ten minutes.

    Raises the share's OSError after that, and any other error at once.
    """
    started, pause = time.monotonic(), 0.5
    while True:
        try:
            return act()
        except OSError as error:
            if not is_away(error) or time.monotonic() - started > MOST_SECONDS:
                raise
            note(f"{error.filename}: {error.strerror}. Waiting for it to come back; nothing is lost.")
        time.sleep(pause)
        pause = min(2 * pause, 10)
