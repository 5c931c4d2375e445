"""bubblewrap around the processes that run submissions: no network, no files but Python's own, no other processes.

What is inside sees the system's libraries, the installation of Python and grader/, all read-only, and a folder in
memory. It is a namespace of processes of its own, which is emptied after each submission: see
grader/forkservers/triton_forkserver.py.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from grader.places import COURSE, PACKAGE

LIMITS, AUTO, STRICT = "limits", "auto", "strict"
LEVELS = (LIMITS, AUTO, STRICT)
RECORDER, FRONT_END = 0, 1  # the sandboxes of a process: each has room for one child
SCRATCH_BYTES = 256 << 20
SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache")


@functools.cache
def missing() -> str:
    """Why there is no sandbox on this machine, as the end of a sentence; "" where there is one."""
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)"
    try:
        trial = subprocess.run([*_walls(), "/usr/bin/env", "true"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {type(error).__name__}"
    said = trial.stderr.strip().splitlines()[-1:]
    return f"bubblewrap does not start: {''.join(said)[:200]}" if trial.returncode else ""


def wanted(level: str) -> bool:
    """Whether a submission is run in a sandbox here; `strict` without one is for the caller to refuse."""
    return level != LIMITS and not missing()


def command(folder: str, python_path: list[str], environment: dict[str, str]) -> tuple[list[str], list[str]]:
    """(what to put before the command of a process that belongs inside, the import path it finds there).

    `folder` is its only writable one, in memory. Of the import path only installations of Python are shown.
    """
    homes = _homes()
    imported = [path for path in map(Path, python_path) if path in homes or (path != COURSE and _is_python(path))]
    walls = [*_walls(), *_read_only([PACKAGE, Path(sys.prefix), Path(sys.base_prefix), *imported, *homes])]
    walls += ["--size", str(SCRATCH_BYTES), "--tmpfs", folder, "--chdir", folder]
    walls += ["--remount-ro", "/dev", "--remount-ro", "/"]  # neither keeps anything from one submission to the next
    for name, value in environment.items():
        walls += ["--setenv", name, value]
    return walls, [str(COURSE), *map(str, imported)]


def _walls() -> list[str]:
    walls = [shutil.which("bwrap"), "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    walls += ["--proc", "/proc", "--dev", "/dev"]
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            walls += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            walls += ["--ro-bind", str(path), str(path)]
    return walls


def _read_only(paths: list[Path]) -> list[str]:
    bound = [path for path in dict.fromkeys(paths) if path.exists() and not path.is_relative_to("/usr")]
    return [word for path in bound for word in ("--ro-bind", str(path), str(path))]


def _homes() -> list[Path]:
    """Where torch and triton lie, and where a link to them leads: not every machine has them with its Python."""
    found = [Path(spec.origin) for name in ("torch", "triton") if (spec := find_spec(name)) and spec.origin]
    return [home for origin in found for home in (origin.parent.parent, origin.resolve().parent.parent)]


def _is_python(path: Path) -> bool:
    """Part of an installation of Python, not a folder that someone put on the import path."""
    installed = path.name in ("site-packages", "dist-packages")
    return installed or path.is_relative_to(sys.prefix) or path.is_relative_to(sys.base_prefix)
