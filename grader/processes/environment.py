"""The environment of a process that we start: its command, its import path, and how many threads it may have."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grader.course.folder import Folder
from grader.places import IMPORTED_FROM

# numpy's OpenBLAS starts a thread per core when it is imported, and each one looks for work for a while: on 16 cores
# importing torch took 3.4 s of a core with them and 1.4 s without.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# For a process that keeps its threads: without work they sleep. By default they look for work in a loop, which
# took 2 to 3 s of a core of a run of 6 where other processes wanted the cores too.
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
# Python looks for garbage whenever there are so many new objects, through older ones in each fifth and twenty-fifth
# look. To look after 700, as it would, took a tenth of the judge's time; little that is large is left to these looks.
GARBAGE = (10_000, 5, 5)


def trusted_path() -> list[str]:
    """Returns this process's import path without the current folder and without any exercise's folder."""
    entries = [Path(entry).resolve() for entry in sys.path if entry]
    kept = [entry for entry in entries if Folder.containing(entry) is None and entry not in (Path.cwd(), IMPORTED_FROM)]
    return [str(entry) for entry in (IMPORTED_FROM, *kept)]


def python_calling(module: str, *arguments: object, path: list[str] | None = None, collects: bool = True) -> list[str]:
    """Returns the command of a process that calls `main` of a module of ours; the arguments are handed over as JSON.

    `path`: its import path, trusted_path() unless it is told. `collects`: False for a process that begins without
    Python's garbage collector, so that nothing that it imports is searched.
    """
    boot = (
        f"import gc, sys, json; gc.set_threshold{GARBAGE}; {'' if collects else 'gc.disable(); '}"
        f"sys.path[:] = json.loads(sys.argv[1]); from {module} import main; main(*json.loads(sys.argv[2]))"
    )
    return [sys.executable, "-I", "-c", boot, json.dumps(path or trusted_path()), json.dumps(arguments)]
