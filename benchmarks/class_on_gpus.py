"""What a class costs where there are GPUs, and whether the number of GPUs changes a verdict.

    python benchmarks/class_on_gpus.py [--students N] [--copies N] [--gpus 1,2,4] [--cores N] [--jobs N]
                                       [--submissions DIR]

Without --students: 50 reference submissions for each GPU, ten per exercise: the solution, the version that the
throughput gate keeps out, odd right kernels, mutants; for several GPUs the same once more with another remark at the
end, so that each GPU has as much to do; and so many copies of all that as --copies says. With --students: the seeded
class of benchmarks/large_class.py (which needs the extra classroom), N students and five exercises, the same for any
number of GPUs.

One GPU of four has the cores of the whole machine for itself; four have to share them. With --cores each run gets so
many cores for each of its GPUs: what is left of ideal scaling then is lost between the GPUs. --jobs: so many judges for
each GPU, in place of as many as the command takes by itself.

`course grade SUBMISSIONS --out RESULTS` judges them once for each number of GPUs; its seconds include the starts of all
processes. --submissions: where the class lies, or is written to if it is not there yet.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402

from grader.author.mutants import mutants_of  # noqa: E402
from grader.classroom.cluster import gpus  # noqa: E402
from grader.course.folder import all_folders  # noqa: E402

SEED = 60
COURSE = [sys.executable, "-c", "from grader.cli import main; main()"]
UNDECIDED = ("inconclusive", "not-run")


def write_reference(submissions: Path, copies: int, only: Collection[str] = ()) -> None:
    """One student per kind of work and copy. `only`: numbers of exercises; none for all."""
    for folder in all_folders(ROOT):
        if only and folder.number not in only:
            continue
        accepted = sorted(folder.accepted_folder.glob("*.py"))[:3]
        mutants = [mutant.text for mutant in mutants_of(folder)]
        spread = mutants[:: max(1, len(mutants) // 5)][:5]
        unwanted = folder.unwanted_file
        texts = [path.read_text() for path in (folder.solution_file, unwanted, *accepted)]
        for kind, text in enumerate([*texts, *spread]):
            for copy in range(copies):
                student = submissions / f"copy{copy}-{kind}" / folder.id
                student.mkdir(parents=True)
                (student / f"{folder.name}.py").write_text(f"{text}# {copy}\n")


def write_class(submissions: Path, students: int) -> None:
    from tests.classroom.submission_folder import SubmissionFolder
    from tests.classroom.synthetic import Class, handed_out

    for hand_in in Class(SEED, handed_out(*(folder.id for folder in all_folders(ROOT)))).scripts(students):
        SubmissionFolder(submissions, submissions).hand_in(hand_in)


@dataclass
class Took:
    """A whole command: its seconds, those that the machine's cores computed meanwhile, and how many it might use."""

    seconds: float
    computed: float
    cores: int


def core_seconds() -> float:
    times = psutil.cpu_times()
    return times.user + times.system


def some_cores(count: int) -> set[int]:
    """So many of this process's, both hardware threads of one before the next."""

    def place(core: int) -> tuple[int, ...]:
        topology = Path(f"/sys/devices/system/cpu/cpu{core}/topology")
        return *(int((topology / name).read_text()) for name in ("physical_package_id", "core_id")), core

    return set(sorted(os.sched_getaffinity(0), key=place)[:count])


def graded(submissions: Path, out: Path, visible: list[str], *options: str, cores: int = 0) -> Took:
    """`cores`: how many the command may use; 0 for all."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(visible)}
    command, allowed = [*COURSE, "grade", str(submissions), "--out", str(out), *options], os.sched_getaffinity(0)
    used = some_cores(cores) if cores else allowed
    begun, computed = time.monotonic(), core_seconds()
    try:
        os.sched_setaffinity(0, used)  # the command inherits it
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    finally:
        os.sched_setaffinity(0, allowed)
    took = Took(time.monotonic() - begun, core_seconds() - computed, len(used))
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:])
    return took


def tests_of(out: Path) -> dict[tuple[str, str, str], tuple[str, str]]:
    """(outcome, verdict's name) by student, exercise and test."""
    found = {}
    for path in sorted(out.glob("students/*/*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for test in result.get("tests", []):
            found[result["student"], result["exercise"], test["name"]] = test["outcome"], test["id"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=0)
    parser.add_argument("--copies", type=int, default=1, help="of the reference submissions, for each GPU")
    parser.add_argument("--gpus", default="1", help="how many at a time, one run each: 1,2,4")
    parser.add_argument("--cores", type=int, default=0, help="for each GPU; without it a run uses all there are")
    parser.add_argument("--jobs", type=int, default=0, help="judges for each GPU")
    parser.add_argument("--submissions", type=Path)
    given = parser.parse_args()
    here = gpus.identifiers()
    first: dict = {}
    with tempfile.TemporaryDirectory() as temporary:
        for count in map(int, given.gpus.split(",")):
            submissions = given.submissions or Path(temporary, "class" if given.students else f"reference-{count}")
            if not submissions.exists():
                if given.students:
                    write_class(submissions, given.students)
                else:
                    write_reference(submissions, count * given.copies)
            if len(here) < count:
                raise SystemExit(f"There are {len(here)} GPUs here. The submissions are in {submissions}.")
            out = Path(temporary, f"results-{count}")
            jobs = ["--jobs", str(count * given.jobs)] if given.jobs else []
            took = graded(submissions, out, here[:count], *jobs, cores=count * given.cores)
            told(count, took, out, first)


def told(count: int, took: Took, out: Path, first: dict) -> None:
    """`first` keeps the first run's figures, for the others to be compared with."""
    with (out / "summary.csv").open(encoding="utf-8-sig", newline="") as lines:
        hand_ins = [row for row in csv.DictReader(lines) if row["status"] != "missing"]
    each, verdicts = count * took.seconds / len(hand_ins), tests_of(out)
    stored = [path.stat().st_mtime for path in out.glob("texts/*/*.json")]
    running = count * max(max(stored) - min(stored), 1e-3) / max(len(stored) - 1, 1)
    for name, value in (("each", each), ("running", running), ("verdicts", verdicts)):
        first.setdefault(name, value)
    found, scaling = dict(Counter(row["status"] for row in hand_ins)), first["each"] / each
    print(
        f"{count} GPU{'s' * (count > 1)}: {len(hand_ins)} hand-ins in {took.seconds:.0f} s, "
        f"{each:.2f} s of a GPU each, {scaling:.2f} of ideal scaling; {found}"
    )
    busy = f"{took.computed / took.seconds:.0f} of {took.cores} cores busy"
    print(f"  {took.computed / len(hand_ins):.1f} s of a core each, {busy}")
    print(
        f"  {running:.2f} s of a GPU each between the first result and the last, without the starts: "
        f"{first['running'] / running:.2f} of ideal"
    )
    undecided = [key for key, (_, id) in verdicts.items() if id in UNDECIDED]
    print(f"  {len(verdicts)} tests, {len(undecided)} undecided {undecided[:5]}")
    before = {key: first["verdicts"].get(_first_copy(key)) for key in verdicts}
    other = [(key, before[key], verdicts[key]) for key in verdicts if before[key] != verdicts[key]]
    print(f"  {len(other)} verdicts differ from those of the first copy in the first run {other[:5]}", flush=True)


def _first_copy(key: tuple[str, str, str]) -> tuple[str, str, str]:
    student, *rest = key
    return re.sub(r"^copy\d+-", "copy0-", student), *rest


if __name__ == "__main__":
    main()
