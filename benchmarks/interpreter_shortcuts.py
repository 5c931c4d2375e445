"""What the shortcuts of Triton's interpreter save: python benchmarks/interpreter_shortcuts.py [--rounds 7]

Every case of every exercise is called with the solution, checked as a learner's call is, in one process that has taken
the shortcuts and in one that has not, in turn. The fastest of all rounds counts: noise only ever adds.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.memory_checker import seconds
from grader.child.interpreter import apply_fixes
from grader.child.interpreting import prepare
from grader.exercise import Folder, all_folders

ROOT = Path(__file__).resolve().parents[1]


def checked(exercise: Folder) -> float:
    return seconds(exercise, rounds=1)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        without, taken = (ProcessPoolExecutor(1, get_context("spawn"), start) for start in (apply_fixes, prepare))
        with without, taken:
            for exercise in all_folders(ROOT):
                turns = [[pool.submit(checked, exercise).result() for pool in (without, taken)] for _ in range(rounds)]
                slow, fast = map(min, zip(*turns))
                print(f"{exercise.id:<20}without {1e3 * slow:6.0f} ms   with {1e3 * fast:6.0f} ms   {fast / slow:.2f}")


if __name__ == "__main__":
    main()
