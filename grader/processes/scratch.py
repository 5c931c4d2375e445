"""The temporary folders of the processes that this one starts, so that whoever has to leave at once can remove them."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

MOST_LOOKS = 200  # until it is given up: a file that nobody may remove stays
LOOK = 0.05  # seconds between two

_folders: set[Path] = set()


def new_folder(prefix: str = "course-") -> Path:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    _folders.add(folder)
    return folder


def remove(folder: Path) -> None:
    """Removes a folder, also where its other users have yet to leave: they write and remove files in it meanwhile.

    Once it is gone none of them can make a file there, so it stays gone.
    """
    for _ in range(MOST_LOOKS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(LOOK)
    _folders.discard(folder)


def remove_all() -> None:
    for folder in list(_folders):
        remove(folder)
