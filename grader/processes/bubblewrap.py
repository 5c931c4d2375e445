"""bubblewrap around the processes that run submissions: no network, no files but Python's own, no other processes.

A process inside sees the system's libraries, the installation of Python and grader/, all read-only, and a folder in
memory. Each sandbox has its own namespace of processes, which is emptied after each submission: see
grader/forkservers/triton_forkserver.py.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from grader.places import COURSE, IMPORTED_FROM, is_installed
from grader.processes.readable import SYSTEM, installations, places_of_python

LIMITS, AUTO, STRICT = "limits", "auto", "strict"
LEVELS = (LIMITS, AUTO, STRICT)
SUBMISSION, FRONT_END = 0, 1  # the sandboxes of a process: each has room for one child
SCRATCH_BYTES = 256 << 20
TRIAL_LIMIT = 120.0  # seconds of real time: a machine is not without a sandbox because it is busy


@functools.cache
def missing() -> str:
    """Returns why there is no sandbox on this machine, as the end of a sentence; "" where there is one."""
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)"
    try:
        trial = subprocess.run([*_walls(), "/usr/bin/env", "true"], capture_output=True, text=True, timeout=TRIAL_LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {type(error).__name__}"
    last_line = trial.stderr.strip().splitlines()[-1:]
    return f"bubblewrap does not start: {''.join(last_line)[:200]}" if trial.returncode else ""


def wanted(level: str) -> bool:
    """Returns whether a submission is run in a sandbox here. If `strict` cannot have a sandbox, the caller has to
    refuse."""
    return level != LIMITS and not missing()


def command(folder: str, python_path: list[str], environment: dict[str, str]) -> tuple[list[str], list[str]]:
    """Returns (the words to put before the command of a process that belongs inside, the import path that it finds
    there).

    `folder` is its only writable folder, in memory. From the import path, only installations of Python are shown.
    """
    walls = [*_walls(), *_read_only(places_of_python(python_path))]
    walls += _hidden(COURSE) if is_installed() else []
    walls += ["--size", str(SCRATCH_BYTES), "--tmpfs", folder, "--chdir", folder]
    walls += ["--remount-ro", "/dev", "--remount-ro", "/"]  # neither keeps anything from one submission to the next
    for name, value in environment.items():
        walls += ["--setenv", name, value]
    return walls, [str(IMPORTED_FROM), *map(str, installations(python_path))]


def _hidden(folder: Path) -> list[str]:
    """Returns the words that lay an empty folder over a folder whose solutions no submission may read."""
    return ["--tmpfs", str(folder), "--remount-ro", str(folder)]


def _walls() -> list[str]:
    walls = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
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
