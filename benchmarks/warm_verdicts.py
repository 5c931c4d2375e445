"""Measures what a warm judge of own kernels costs, in seconds of a core for each verdict: python
benchmarks/warm_verdicts.py

    python benchmarks/warm_verdicts.py                  60 kernels of tests/own/kernels, each twice; exits with 1 where
                                                        one takes more than MOST seconds
    python benchmarks/warm_verdicts.py softmax matmul   these alone

The seconds are those of the judge's process and of all that it has started. The anchor, a process that only imports
torch and triton, tells a slow machine from a slow judge: each figure is told as a ratio to it as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from times import ANCHOR, COMMANDS, sample  # noqa: E402

from grader.own.judgement import RIGHT, WRONG, request_of  # noqa: E402
from grader.own.warm_judge import WarmOwnJudge  # noqa: E402
from tests.own.test_ordinary_kernels import CASES, KERNELS, SEED, reference_of  # noqa: E402

MOST = 1.5  # seconds of a core
SHOWN = 1.3
SECOND = os.sysconf("SC_CLK_TCK")
STILL = 0.3  # seconds of real time in which processes of an answered request come to their end


def core_seconds() -> float:
    """Returns the seconds of a core that the processes below this one have taken, with those that they waited for."""
    times: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            times[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    below, found = {os.getpid()}, 0
    while more := {pid for pid, (parent, _) in times.items() if parent in below and pid not in below}:
        below |= more
        found += sum(times[pid][1] for pid in more)
    return found / SECOND


def cases(names: list[str], folder: Path) -> dict[str, tuple[dict, str]]:
    """Returns the request of each kernel, written into the folder, and the outcome that it has to have."""
    found = {}
    for name, wrong in CASES:
        if names and name not in names:
            continue
        reference, text = reference_of(name), (KERNELS / f"{name}.py").read_text(encoding="utf-8")
        if wrong:
            text = text.replace(*reference.WRONG[wrong])
        file = folder / (wrong or "right") / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        request = request_of(file, KERNELS / f"{name}_ref.py", shapes=reference.SHAPES, seed=SEED)
        found[f"{name}: {wrong or 'right'}"] = request, WRONG if wrong else RIGHT
    return found


def measured(requests: dict[str, tuple[dict, str]], rounds: int) -> dict[str, list[float]]:
    """Returns the seconds of each verdict, by round; the first verdict of all warms the judge, and is left out."""
    taken: dict[str, list[float]] = {name: [] for name in requests}
    warm = WarmOwnJudge()
    try:
        warm.ask(next(iter(requests.values()))[0])
        for _ in range(rounds):
            for name, (request, outcome) in requests.items():
                time.sleep(STILL)
                before = core_seconds()
                found = warm.ask(request)
                time.sleep(STILL)
                taken[name].append(core_seconds() - before)
                if found.outcome != outcome:
                    raise SystemExit(f"{name} is {found.outcome}: {' '.join(found.sentences)}")
    finally:
        warm.end()
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    anchor = statistics.median(sample(*COMMANDS[ANCHOR]).core for _ in range(3))
    with tempfile.TemporaryDirectory() as folder:
        taken = measured(cases(given.names, Path(folder)), given.rounds)
    least = {name: min(seconds) for name, seconds in taken.items()}
    for name, seconds in sorted(least.items(), key=lambda one: one[1]):
        if seconds > SHOWN or given.names:
            print(f"{name:<48}{seconds:>6.2f} s of a core{seconds / anchor:>7.2f} x anchor")
    for kind, names in (("right", [one for one in least if one.endswith(": right")]),
                        ("wrong", [one for one in least if not one.endswith(": right")])):  # fmt: skip
        if names:
            of_kind = [least[name] for name in names]
            print(
                f"{len(names)} {kind}: median {statistics.median(of_kind):.2f} s, most {max(of_kind):.2f} s; "
                f"{statistics.median(of_kind) / anchor:.2f} and {max(of_kind) / anchor:.2f} x anchor ({anchor:.2f} s)"
            )
    return int(max(least.values()) > MOST)


if __name__ == "__main__":
    sys.exit(main())
