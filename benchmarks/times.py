"""What grading costs, in wall seconds: python benchmarks/times.py [--rounds 3]

Each figure is the median of several rounds of the real command in a fresh process. The first row, a process that only
imports torch and triton, is the anchor: it tells a slow machine from a slow grader.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST = [sys.executable, "-m", "pytest"]
NOT_COMPILED = ["-k", "not (compiles or registers or move_16_bytes or tensor_cores)"]
COMMANDS = {
    "import torch, triton (anchor)": ([sys.executable, "-c", "import torch, triton, triton.language"], 0),
    "stub, 03_softmax": ([*PYTEST, "exercises/03_softmax"], 1),
    "solution, 03_softmax": ([*PYTEST, "exercises/03_softmax", "--submission", "solutions"], 0),
    "  without machine code": ([*PYTEST, "exercises/03_softmax", "--submission", "solutions", *NOT_COMPILED], 0),
    "solution, 05_grouped_matmul": ([*PYTEST, "exercises/05_grouped_matmul", "--submission", "solutions"], 0),
    "  without machine code ": (
        [*PYTEST, "exercises/05_grouped_matmul", "--submission", "solutions", *NOT_COMPILED],
        0,
    ),
    "five solutions": ([*PYTEST, "exercises", "--submission", "solutions"], 0),
}


def seconds(command: list[str], status: int) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != status:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    samples = {name: [] for name in COMMANDS}
    for _ in range(rounds + 1):  # the first round warms the caches
        for name, (command, status) in COMMANDS.items():
            samples[name].append(seconds(command, status))
    anchor = statistics.median(samples["import torch, triton (anchor)"][1:])
    for name, values in samples.items():
        median = statistics.median(values[1:])
        spread = f"({min(values[1:]):.2f} to {max(values[1:]):.2f})"
        print(f"{name:<32}{median:6.2f} s  {median / anchor:5.2f} x anchor  {spread}")


if __name__ == "__main__":
    main()
