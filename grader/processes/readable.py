"""The places that a process may read while it handles other people's files: the system, Python, torch, Triton, grader/.

A sandbox shows these places alone, and without a sandbox Landlock opens no others: no solutions, no hand-ins, no hidden
cases, nothing of other processes.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from grader.places import COURSE, IMPORTED_FROM, PACKAGE

SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache")
# Libraries read about memory, cores and random numbers here when they first compute.
OF_THE_MACHINE = (
    "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo",
    "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu",
)  # fmt: skip


def installations(python_path: list[str]) -> list[Path]:
    """Returns the folders of an import path that are installations of Python, not others that someone put there."""
    homes = _homes()
    return [path for path in map(Path, python_path) if path in homes or (path != IMPORTED_FROM and _is_python(path))]


def places_of_python(python_path: list[str]) -> list[Path]:
    """Returns the folders that hold this package, Python, and what is imported from the path."""
    return [PACKAGE, Path(sys.prefix), Path(sys.base_prefix), *installations(python_path), *_homes()]


def readable(python_path: list[str]) -> list[str]:
    """Returns the places that a process with this import path may read, with all that is below them.

    If the course lies below one of them, as in /usr/src, the other entries there can be read and the course cannot.
    """
    kept_out = COURSE if (COURSE / "exercises").exists() else None
    places = [*map(Path, SYSTEM), *places_of_python(python_path), *map(Path, OF_THE_MACHINE)]
    there = dict.fromkeys(path for path in places if path.exists())
    return [str(place) for path in there for place in _all_but(path, kept_out)]


def _all_but(path: Path, kept_out: Path | None) -> list[Path]:
    """Returns the place itself; if `kept_out` lies below it, the other entries in it and in the folders on the way,
    links left out."""
    if kept_out is None or not kept_out.is_relative_to(path.resolve()):
        return [path]
    entries = [] if path == kept_out else [entry for entry in path.resolve().iterdir() if not entry.is_symlink()]
    return [place for entry in entries for place in _all_but(entry, kept_out)]


def _homes() -> list[Path]:
    """Returns the folders that hold numpy, torch and Triton, and the folders that links to them lead to."""
    specs = [find_spec(name) for name in ("numpy", "torch", "triton")]
    origins = [Path(spec.origin) for spec in specs if spec and spec.origin]
    return [home for origin in origins for home in (origin.parent.parent, origin.resolve().parent.parent)]


def _is_python(path: Path) -> bool:
    installed = path.name in ("site-packages", "dist-packages")
    return installed or path.is_relative_to(sys.prefix) or path.is_relative_to(sys.base_prefix)
