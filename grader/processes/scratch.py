"""The temporary folders of the processes that this one starts, which it can remove when it has to leave at once."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path

MOST_LOOKS = 200  # at a folder in which files appear again and again; then it stays
LOOK = 0.05  # seconds from one look to the next

_folders: set[Path] = set()


_making = threading.RLock()


def new_folder(prefix: str = "course-") -> Path:
    with _making:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        _folders.add(folder)
        return folder


def make_no_more() -> None:
    """Lets no other thread make a folder from now on: it waits until this process, which is about to leave, is gone."""
    _making.acquire()


def remove(folder: Path) -> None:
    """Removes a folder, also while other users of it, which have yet to leave, write and remove files in it.

    Once the folder is gone none of them can make a file there, so it stays gone. A folder inside that a submission has
    closed to everybody stays, and there is no wait for it.
    """
    for _ in range(MOST_LOOKS):
        try:
            shutil.rmtree(folder)
        except PermissionError:
            shutil.rmtree(folder, ignore_errors=True)
            break
        except OSError:
            time.sleep(LOOK)
        if not folder.exists():
            break
    _folders.discard(folder)


def remove_all() -> None:
    for folder in list(_folders):
        remove(folder)
