"""What the commands for self-study cost: python benchmarks/self_study.py [--rounds 3]

commands   wall seconds of `course status` and `course hint` in fresh processes, the median
watch      from a save to the last line of the report, beside a bare pytest run of the same file; the first verdict
           is not counted, and each save comes a few seconds after the verdict before it
page       bytes of the report page with all exercises on it
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pexpect

ROOT = Path(__file__).resolve().parent.parent
COURSE = str(Path(sys.executable).with_name("course"))
WATCHED = ("01_masked_add", "02_strided_blocks", "03_softmax", "04_transpose")
PAUSE = 5.0  # seconds between a verdict and the next save: faster than anybody edits
END = "Waiting for"


def copied(folder: Path) -> Path:
    for name in ("exercises", "solutions", "hints"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def seconds(course: Path, *command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=course, capture_output=True, check=False)
    return time.perf_counter() - began


def commands(course: Path, rounds: int) -> None:
    for arguments in (("status",), ("hint", "03", "--again")):
        samples = [seconds(course, COURSE, *arguments) for _ in range(rounds + 3)]
        shown = f"course {' '.join(arguments)}"
        print(f"{shown:<34}{statistics.median(samples[1:]):6.2f} s  (worst {max(samples[1:]):.2f})")


def watch(course: Path, id: str, rounds: int) -> None:
    file = course / "exercises" / id / f"{id[3:]}.py"
    file.write_text((course / "solutions" / id / f"{id[3:]}.py").read_text())
    bare = [seconds(course, sys.executable, "-m", "pytest", f"exercises/{id}") for _ in range(rounds + 1)]
    terminal = pexpect.spawn(COURSE, ["watch", id], cwd=str(course), timeout=120, env=dict(os.environ, TERM="xterm"))
    terminal.expect(END)
    samples = []
    for _ in range(rounds):
        time.sleep(PAUSE)
        began = time.perf_counter()
        file.write_text(file.read_text())
        terminal.expect("Next: ")
        samples.append(time.perf_counter() - began)
        terminal.expect(END)
    terminal.send("q")
    terminal.expect(pexpect.EOF)
    median, plain = statistics.median(samples), statistics.median(bare[1:])
    print(f"watch {id:<28}{median:6.2f} s  (worst {max(samples):.2f})   bare pytest {plain:.2f} s")


def page(course: Path) -> None:
    subprocess.run([COURSE, "report"], cwd=course, capture_output=True, check=True)
    print(f"{'report page':<34}{(course / 'report.html').stat().st_size / 1000:6.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        course = copied(Path(folder))
        subprocess.run([COURSE, "hint", "03"], cwd=course, capture_output=True, check=True)
        commands(course, rounds)
        for id in WATCHED:
            watch(course, id, rounds)
        id = "05_grouped_matmul"
        shutil.copy(course / f"solutions/{id}/{id[3:]}.py", course / f"exercises/{id}/{id[3:]}.py")
        seconds(course, sys.executable, "-m", "pytest", f"exercises/{id}")
        page(course)


if __name__ == "__main__":
    main()
