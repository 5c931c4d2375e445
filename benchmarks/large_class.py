"""What a large class costs: `python benchmarks/large_class.py [STUDENTS] [EXERCISE]...` prints submissions a minute.

A seeded class of .py files, no two alike: 57 % right, 30 % partly right, 7 % stubs, 3 % slow, 3 % hostile. It is judged
twice by `course grade SUBMISSIONS --out RESULTS`, one submission at a time and as many as there are cores, starts of
all processes included. It needs the extra classroom; on a busy machine the figures say little, so the load is shown.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grader.processes import bubblewrap
from tests.classroom.submission_folder import SubmissionFolder
from tests.classroom.synthetic import Class, handed_out

SEED = 60


def main(students: int, exercises: list[str]) -> None:
    cores = os.cpu_count()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        hand_ins = Class(SEED, handed_out(*exercises)).scripts(students)
        for hand_in in hand_ins:
            SubmissionFolder(base / "submissions", base).hand_in(hand_in)
        how = bubblewrap.missing() or "each in a sandbox"
        print(f"{len(hand_ins)} submissions of {', '.join(exercises)}; {cores} cores; {how}", flush=True)
        seconds = {}
        for jobs in dict.fromkeys((cores, 1)):
            folder = SubmissionFolder(base / "submissions", base / f"results-{jobs}")
            load, started = os.getloadavg()[0], time.monotonic()
            folder.grade("--jobs", str(jobs))
            seconds[jobs] = time.monotonic() - started
            rate = 60 * len(hand_ins) / seconds[jobs]
            print(
                f"--jobs {jobs:<3}{seconds[jobs]:8.1f} s {rate:8.1f} a minute   (load before: {load:.1f})", flush=True
            )
        print(f"{seconds[1] / seconds[cores]:.2f} times the rate of one at a time")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120, sys.argv[2:] or ["03_softmax"])
