"""Benchmarks can be started, with the code as it is."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT
from tests.waiting import NEVER

LOADED = """
import runpy, sys
sys.path[:0] = sys.argv[1:3]
for path in sys.argv[3:]:
    try:
        runpy.run_path(path, run_name="loaded")
    except ModuleNotFoundError as missing:  # what only a machine with a GPU has
        if missing.name.partition(".")[0] not in ("cuda", "pynvml"):
            raise
    print(path)
"""


def test_every_benchmark_loads():
    """What they take from the grader is there; what they measure takes too long for a test."""
    files = sorted(map(str, (ROOT / "benchmarks").glob("*.py")))
    command = [sys.executable, "-c", LOADED, str(ROOT), str(ROOT / "benchmarks"), *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=NEVER)
    assert len(files) > 5 and done.stdout.splitlines() == files, done.stderr
