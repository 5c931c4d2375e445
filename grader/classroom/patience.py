"""A network share that is away for a minute: wait for it. Whatever else is wrong with a file is told at once."""

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
    """Whether this is what a share says that may come back. A folder that is gone counts: so looks an unmounted one."""
    return error.errno in AWAY


def patiently(act: Callable[[], T], note: Callable[[str], None]) -> T:
    """What `act` gives; while it fails since a share is away, it is tried again, for ten minutes."""
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
