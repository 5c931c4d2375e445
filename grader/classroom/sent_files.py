"""This module lists the files that were sent: those of a folder or of a platform's zip. Zips inside count as folders.

What a student packs is bounded in depth, number and size. A file that cannot be read stays in the list, and says why.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import os
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NoReturn

import click

MOST_BYTES = 64 << 20  # of one file
MOST_ENTRIES = 50_000  # of a platform's zip
MOST_DEPTH, MOST_PACKED, MOST_UNPACKED = 3, 1000, 256 << 20  # of a student's zip: zips in zips, files, bytes of zips
BROKEN = (  # RuntimeError: it has a password
    zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError, zlib.error, lzma.LZMAError,
)  # fmt: skip
LINK, NO_FILE = "is a link; hand in the file itself", "is not a file"
HIDDEN = "is hidden and was not read; hand in the file itself"


@dataclass(frozen=True)
class File:
    """A file that was sent. `path`: below what was read; a zip is a folder in it. `problem`: why it cannot be read."""

    path: PurePosixPath
    size: int
    time: float  # when it was written
    read: Callable[[], bytes]
    problem: str = ""
    turn: int = 0  # a platform's number for the hand-in, which grows


class _TooMuch(ValueError):
    """Raised where a zip holds more than is opened; the message says how much."""


@dataclass
class _Room:
    """How much of a student's zip may still be opened."""

    files: int = MOST_PACKED
    bytes: int = MOST_UNPACKED

    def take(self, files: int, bytes: int) -> None:
        self.files, self.bytes = self.files - files, self.bytes - bytes
        if self.files < 0:
            raise _TooMuch(f"it holds more than {MOST_PACKED} files")
        if self.bytes < 0:
            raise _TooMuch(f"it has more than {MOST_UNPACKED >> 20} MB")


def files_in(folder: Path, without: Path | None = None) -> list[File]:
    """Returns the files below a folder, but for those of a folder to leave out, and for hidden ones where others are.

    Raises OSError.
    """
    found = []
    for place, inner, names in os.walk(folder, onerror=_raise):
        inner[:] = sorted(each for each in inner if without is None or Path(place, each).resolve() != without.resolve())
        links = [each for each in inner if Path(place, each).is_symlink()]
        found += [_on_disk(Path(place, name), folder) for name in sorted([*names, *links])]
    return [one for file in _told(found) for one in _unpacked(file, _Room())]


@contextlib.contextmanager
def sent(source: Path, without: Path | None = None) -> Iterator[list[File]]:
    """Yields the files of a folder, or of a platform's zip, which can be read meanwhile.

    Raises ClickException where the zip cannot be read.
    """
    if source.is_dir():
        yield files_in(source, without)
        return
    try:
        with zipfile.ZipFile(source) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MOST_ENTRIES:
                raise click.ClickException(f"{source} holds {len(entries)} files; {MOST_ENTRIES} are the most.")
            paths = [PurePosixPath(entry.filename.replace("\\", "/")) for entry in entries]
            files = [File(p, e.file_size, _time(e), partial(archive.read, e)) for p, e in zip(paths, entries)]
            yield [one for file in _told(files) for one in _unpacked(file, _Room())]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise click.ClickException(f"{source} cannot be read as a zip file ({error}). Download it again.") from None


def _raise(error: OSError) -> NoReturn:
    raise error


def _on_disk(path: Path, folder: Path) -> File:
    facts = path.lstat()
    problem = LINK if stat.S_ISLNK(facts.st_mode) else "" if stat.S_ISREG(facts.st_mode) else NO_FILE
    shown = PurePosixPath(str(path.relative_to(folder)).replace("\\", "/"))  # an unpacked zip of Windows has such names
    return File(shown, facts.st_size, facts.st_mtime, path.read_bytes, problem)


def _unpacked(file: File, room: _Room, depth: int = MOST_DEPTH) -> list[File]:
    """Returns the files of a zip. Returns a file that is none as it is, and with a problem a zip that is not opened."""
    if file.problem or file.path.suffix.lower() != ".zip":
        return [file]
    try:
        if not depth:
            raise _TooMuch(f"more than {MOST_DEPTH} zips lie in each other")
        room.take(0, file.size)
        with zipfile.ZipFile(io.BytesIO(file.read())) as archive:
            entries = list(enumerate(archive.infolist()))
        room.take(len(entries), 0)
    except BROKEN as error:
        return [replace(file, problem=f"cannot be opened ({error})")]
    members = [
        File(file.path / entry.filename.replace("\\", "/").lstrip("/"), entry.file_size, _time(entry),
             partial(_member, file.read, number))
        for number, entry in entries
        if not entry.is_dir()
    ]  # fmt: skip
    found = [one for each in members if not _is_clutter(each.path) for one in _unpacked(each, room, depth - 1)]
    return found or [replace(file, problem="holds no file")]


def _member(read: Callable[[], bytes], number: int) -> bytes:
    """Returns the content of a zip's entry. Raises OSError where it is damaged, as a disk would."""
    try:
        with zipfile.ZipFile(io.BytesIO(read())) as archive:
            return archive.read(archive.infolist()[number])
    except BROKEN as error:
        raise OSError(None, f"in a zip: {error}") from None


def _time(entry: zipfile.ZipInfo) -> float:
    try:
        return time.mktime((*entry.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0


def _told(files: list[File]) -> list[File]:
    """Returns the files that are not hidden, and with a problem one of each folder in which all are hidden."""
    seen = [file for file in files if not _is_clutter(file.path)]
    holding = {folder for file in seen for folder in file.path.parents}
    hidden: dict[PurePosixPath, File] = {}
    for file in (each for each in files if _is_clutter(each.path)):
        folder = next(each for each in file.path.parents if not _is_clutter(each))
        if folder.parts and folder not in holding:
            hidden.setdefault(folder, replace(file, problem=file.problem or HIDDEN))
    return [*seen, *hidden.values()]


def _is_clutter(path: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)
