"""What grading a class costs: `python benchmarks/classroom.py [STUDENTS]` prints seconds, in all and per hand-in.

The class is the seeded one of the tests (right, partly right, wrong and hostile work), on all exercises. It needs the
extra classroom; on a busy machine the figures say little.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grader.course.folder import all_folders
from grader.processes import bubblewrap
from tests.classroom.instructor import ROOT, Classroom
from tests.classroom.synthetic import Class

SEED = 20


def main(students: int) -> None:
    folders = all_folders(ROOT)
    with tempfile.TemporaryDirectory() as temporary:
        classroom = Classroom(Path(temporary, "class"))
        classroom.make(*(folder.id for folder in folders))
        released = {folder.id: classroom.released(folder.id, folder.name) for folder in folders}
        hand_ins = Class(SEED, released).hand_ins(students)
        for hand_in in hand_ins:
            classroom.hand_in(hand_in.student, hand_in.exercise, hand_in.files)
        sandboxed = bubblewrap.missing() or "in a sandbox"
        print(f"{students} students, {len(hand_ins)} hand-ins, {os.cpu_count()} cores, {sandboxed}", flush=True)
        show("course grade, all of it", seconds(classroom, "course", "grade"), len(hand_ins))
        idle = seconds(classroom, "course", "grade")
        show("course grade, nothing to do", idle, len(hand_ins))
        classroom.run("rm", "-r", "autograded")
        show("of it: autograde", seconds(classroom, "course", "grade") - idle, len(hand_ins))
        start = seconds(classroom, "nbgrader", "--version") * len(folders)
        feedback = sum(seconds(classroom, "nbgrader", "generate_feedback", folder.id) for folder in folders)
        show("feedback, without nbgrader's start", feedback - start, len(hand_ins))


def seconds(classroom: Classroom, *command: str) -> float:
    started = time.monotonic()
    classroom.run(*command)
    return time.monotonic() - started


def show(what: str, took: float, hand_ins: int) -> None:
    print(f"{what:<36}{took:8.1f} s {took / hand_ins:8.3f} s a hand-in", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
