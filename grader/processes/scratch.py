"""The temporary folders of the processes that this one starts, so that whoever has to leave at once can remove them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

_folders: set[Path] = set()


def new_folder(prefix: str = "course-") -> Path:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    _folders.add(folder)
    return folder


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _folders.discard(folder)


def remove_all() -> None:
    for folder in list(_folders):
        remove(folder)
