"""A folder of submissions, and `course grade FOLDER --out RESULTS`: as it is typed, in this process, killed."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.classroom.instructor import ROOT, environment
from tests.classroom.synthetic import HandIn
from tests.typed_commands import run_course
from tests.waiting import NEVER, until


@dataclass
class SubmissionFolder:
    """`path` holds the submissions, `out` gets the results."""

    path: Path
    out: Path

    def hand_in(self, hand_in: HandIn) -> None:
        self.put(hand_in.student, hand_in.exercise, hand_in.files)

    def put(self, student: str, inner: str, files: dict[str, bytes]) -> None:
        folder = self.path / student / inner
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)

    def grade(self, *options: str, status: int = 0, **more: str) -> str:
        done = subprocess.run(
            self._command(*options), cwd=ROOT, env=environment(**more), capture_output=True, text=True, timeout=NEVER
        )
        assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    def here(self, *options: str, status: int = 0) -> str:
        """As `grade`, in this process: most of what a process of its own does is to import."""
        done = run_course(*self._command(*options)[1:], cwd=ROOT, **environment())
        assert done.status == status, f"{done.status}\n{done.out}\n{done.err}"
        return done.out + done.err

    def start(self, *options: str) -> subprocess.Popen:
        return subprocess.Popen(
            self._command(*options), cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip

    def killed(self, when: Callable[[], bool], *options: str) -> bool:
        """Starts the command and kills it, with no chance to clear up, when it is time; False if it was done before."""
        running = self.start(*options)
        until(lambda: running.poll() is not None or when(), lambda: self.judged)
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGKILL)
        return running.wait(NEVER) == -signal.SIGKILL

    def _command(self, *options: str) -> list[str]:
        return ["course", "grade", str(self.path), "--out", str(self.out), "--no-speed", *options]

    @property
    def judged(self) -> int:
        return len(list(self.out.glob("texts/*/*.json")))

    def table(self, name: str = "summary.csv") -> list[dict[str, str]]:
        with (self.out / name).open(encoding="utf-8-sig", newline="") as lines:
            return list(csv.DictReader(lines))

    def result(self, student: str, exercise: str) -> dict:
        return json.loads((self.out / "students" / student / f"{exercise}.json").read_text(encoding="utf-8"))

    def verdicts(self) -> dict[str, object]:
        """All that has to be the same in every run: numbers drawn from a seed, and times, are not."""
        found: dict[str, object] = {}
        for path in sorted(self.out.glob("students/*/*.json")):
            result = json.loads(path.read_text(encoding="utf-8"))
            tests = [[t["name"], t["item"], t["outcome"], t["points"]] for t in result.get("tests", [])]
            facts = [result[name] for name in ("student", "exercise", "status", "note", "text")]
            found[str(path.relative_to(self.out))] = [*facts, result.get("points"), result.get("fault"), tests]
        found["files"] = sorted(str(path.relative_to(self.out)) for path in self.out.rglob("*") if path.is_file())
        points = ("student", "exercise", "status", "score", "max_score", "reached", "judged", "note")
        found["summary"] = [[row[name] for name in points] for row in self.table()]
        found["items"] = self.table("items.csv")
        return found
