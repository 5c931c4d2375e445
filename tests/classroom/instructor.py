"""An instructor: the commands of a class, in processes as they are typed, or in this process."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.rubric import SPEED, points_of
from grader.course.folder import Folder
from tests.typed_commands import Finished, as_typed_in, run_course
from tests.waiting import NEVER

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def environment(**more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COLUMNS"))}
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])  # nbgrader calls alembic by name
    return {**inherited, "PATH": path, "PYTHONPATH": str(ROOT), **more}


@dataclass
class Classroom:
    """A class's folder and the commands run in it."""

    path: Path
    course: Path = ROOT
    speed: bool = False  # whether what only a GPU can show counts

    def run(self, *command: str, status: int = 0, cwd: Path | None = None, **more: str) -> str:
        """What the command prints; its exit status has to be `status`."""
        done = subprocess.run(
            command, cwd=cwd or self.path, env=environment(**more), capture_output=True, text=True, timeout=4 * NEVER
        )
        assert done.returncode == status, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def here(self, *command: str, status: int = 0, cwd: Path | None = None, **more: str) -> str:
        """As `run`, in this process: a process of its own imports nbgrader anew, which takes three seconds."""
        started = {"course": run_course, "nbgrader": run_nbgrader}[command[0]]
        done = started(*command[1:], cwd=cwd or self.path, **environment(**more))
        assert done.status == status, f"{command} ended with {done.status}\n{done.out}\n{done.err}"
        return done.out + done.err

    def make(self, *exercises: str, assignment: str = "") -> str:
        """`course notebooks` and, for each assignment, `nbgrader generate_assignment`."""
        self.path.mkdir(exist_ok=True)
        named = ["--assignment", assignment] if assignment else []
        counts = "--speed" if self.speed else "--no-speed"
        said = self.here("course", "notebooks", "--out", str(self.path), counts, *named, *exercises, cwd=self.course)
        for name in [assignment] if assignment else exercises:
            said += self.here("nbgrader", "generate_assignment", "--force", name)
        return said

    def released(self, assignment: str, name: str):
        import nbformat

        return nbformat.read(self.path / "release" / assignment / f"{name}.ipynb", as_version=4)

    def hand_in(self, student: str, assignment: str, files: dict[str, bytes | str]) -> None:
        folder = self.path / "submitted" / student / assignment
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())

    def export(self, exporter: str) -> list[dict[str, str]]:
        file = f"{exporter.lower()}.csv"
        self.here("nbgrader", "export", f"--exporter=grader.classroom.nbgrader.exports.{exporter}", "--to", file)
        with (self.path / file).open(encoding="utf-8-sig", newline="") as lines:
            return list(csv.DictReader(lines))

    def scores(self) -> dict[tuple[str, str, str], float | None]:
        """By student, exercise and item; None where an item is open."""
        rows = self.export("Items")
        return {
            (row["student_id"], row["exercise"], row["item"]): float(row["judged"]) if row["judged"] else None
            for row in rows
        }

    def feedback(self, student: str, assignment: str, name: str) -> str:
        return (self.path / "feedback" / student / assignment / f"{name}.html").read_text(encoding="utf-8")


def run_nbgrader(*arguments: str, cwd: Path, **more: str) -> Finished:
    from jupyter_core.application import NoStart
    from nbgrader.apps.nbgraderapp import NbGraderApp

    said, status, app = io.StringIO(), 0, NbGraderApp()
    with as_typed_in(cwd, more), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            app.initialize(list(arguments))
            with contextlib.suppress(NoStart):  # raised once the command in the arguments has run
                app.start()
        except SystemExit as ended:
            status = int(ended.code or 0)
        finally:
            while app is not None:  # nbgrader db assignment add is three deep
                app.log.handlers.clear()  # which hold this stream
                app.clear_instance()
                app = getattr(app, "subapp", None)
    return Finished(status, said.getvalue(), "")


def points_without_speed(*folders: Folder, hidden: Path | None = None) -> dict[str, dict[str, float]]:
    """By exercise and item, where there is no GPU."""
    points = points_of(list(folders), hidden)
    return {id: {item: worth for item, worth in items.items() if item != SPEED} for id, items in points.items()}


def solution(exercise: str) -> str:
    return (ROOT / "solutions" / exercise / f"{exercise[3:]}.py").read_text(encoding="utf-8")
