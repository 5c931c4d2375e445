"""Measures what grading costs, in seconds of a core, and fails where that has grown: python benchmarks/times.py

    python benchmarks/times.py             exits with 1 where a command has become more than 10 % slower
    python benchmarks/times.py --keep      keeps this run's figures in benchmarks/times.json, for later runs
    python benchmarks/times.py --rounds 7  takes more rounds, where a machine is restless

Each command runs in a fresh process, with the same seed. What is compared is a ratio: its seconds of a core to those of
the anchor of the same round, a process that only imports torch and triton. So a slow machine is told from a slow
grader, and a busy one changes little. The real seconds are told beside, and decide nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).with_suffix(".json")
MOST = 1.10  # times the ratio that is kept
ANCHOR = "import torch, triton (anchor)"
PYTEST = [sys.executable, "-m", "pytest", "--seed", "61"]
SOLUTIONS = ["--submission", "solutions"]
NOT_COMPILED = ["-k", "not (compiles or registers or move_16_bytes or tensor_cores)"]
EASY = ("01_masked_add", "02_strided_blocks", "03_softmax", "04_transpose", "06_fused_outer")
FIVE = [f"exercises/{name}" for name in EASY]
WRONG = ["--submission", "tests/other_judges/09_padding_in_the_variance.py"]
COMMANDS = {  # each with its exit status
    ANCHOR: ([sys.executable, "-c", "import torch, triton, triton.language"], 0),
    "stub, 03_softmax": ([*PYTEST, "exercises/03_softmax", "--submission", "exercises"], 1),
    "solution, 03_softmax": ([*PYTEST, "exercises/03_softmax", *SOLUTIONS], 0),
    "  03, without machine code": ([*PYTEST, "exercises/03_softmax", *SOLUTIONS, *NOT_COMPILED], 0),
    "solution, 05_grouped_matmul": ([*PYTEST, "exercises/05_grouped_matmul", *SOLUTIONS], 0),
    "  05, without machine code": ([*PYTEST, "exercises/05_grouped_matmul", *SOLUTIONS, *NOT_COMPILED], 0),
    "a wrong kernel, 09_layer_norm": ([*PYTEST, "exercises/09_layer_norm", *WRONG], 1),
    "five solutions": ([*PYTEST, *FIVE, *SOLUTIONS], 0),
}


class Sample(NamedTuple):
    """Seconds of a core, of a process and all that it started and waited for; and seconds on the wall."""

    core: float
    wall: float


def sample(command: list[str], status: int) -> Sample:
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        _, ended, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(ended)  # Popen has nobody left to wait for
        if process.returncode != status:
            output.seek(0)
            said = output.read().decode(errors="replace")
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}, not {status}:\n{said}")
    return Sample(usage.ru_utime + usage.ru_stime, wall)


def measured(rounds: int) -> dict[str, list[Sample]]:
    """Returns the samples of each command, one a round; a first round warms the caches and is left out."""
    samples: dict[str, list[Sample]] = {name: [] for name in COMMANDS}
    for _ in range(rounds + 1):
        for name, (command, status) in COMMANDS.items():
            samples[name].append(sample(command, status))
    return {name: taken[1:] for name, taken in samples.items()}


def ratios(samples: dict[str, list[Sample]]) -> dict[str, float]:
    """Returns the median over the rounds of each command's seconds of a core, as a ratio to the round's anchor."""
    anchors = [one.core for one in samples[ANCHOR]]
    return {
        name: round(statistics.median(one.core / anchor for one, anchor in zip(taken, anchors)), 3)
        for name, taken in samples.items()
        if name != ANCHOR
    }


def compared(now: dict[str, float], kept: dict[str, float]) -> list[str]:
    """Returns a line for each command that is slower than MOST times what is kept of it, or of which nothing is."""
    lines = []
    for name, ratio in now.items():
        if name not in kept:
            lines.append(f"{name.strip()}: no figure is kept of it.")
        elif ratio > MOST * kept[name]:
            lines.append(
                f"{name.strip()}: {ratio:.2f} x anchor, and {kept[name]:.2f} are kept: "
                f"{ratio / kept[name] - 1:.0%} slower."
            )
    return lines


def kept_figures(path: Path) -> dict[str, float]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def table(samples: dict[str, list[Sample]], now: dict[str, float], kept: dict[str, float]) -> list[str]:
    lines = [f"{'':<32}{'of a core':>10}{'on the wall':>13}{'x anchor':>10}{'kept':>8}"]
    for name, taken in samples.items():
        core, wall = (statistics.median(values) for values in zip(*taken))
        before = f"{kept[name]:.2f}" if name in kept else "-"
        against = f"{now[name]:>10.2f}{before:>8}" if name in now else ""
        lines.append(f"{name:<32}{core:>8.2f} s{wall:>11.2f} s{against}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    samples = measured(given.rounds)
    now, kept = ratios(samples), kept_figures(KEPT)
    print(*table(samples, now, kept), sep="\n")
    if given.keep:
        KEPT.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
        print(f"Kept in {KEPT.relative_to(ROOT)}. Next: commit it, and say in the commit why the figures moved.")
        return 0
    if slower := compared(now, kept):
        print(*slower, sep="\n")
        print("Next: find what takes longer; if it is worth it, python benchmarks/times.py --keep")
        return 1
    print("No command is more than 10 % slower than what is kept.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
