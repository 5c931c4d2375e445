"""An exercise that is none of the course's: its folder is laid out as theirs, and graded only when it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.folder import Folder, load_test_file
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import CheckUse
from grader.processes.interpreter_process import Interpreter

collect_ignore = ["exercises", "solutions"]
FOLDER = Folder(Path(__file__).resolve().parent / "exercises" / "90_pick_peaks")


class Graded:
    """A submission as text, and the judge that judges it."""

    def __init__(self, text: str, folder: Path, interpreter: Interpreter, seed: int = 1) -> None:
        path = folder / "pick_peaks.py"
        path.write_text(text)
        self.module = load_test_file(FOLDER)
        self.run = Run(FOLDER, str(path), seed, interpreter=interpreter)
        self.judge = Judge(self.module.exercise, self.run)

    def check(self, *data, **options):
        return CheckUse.of("test_a_case", *data, **options).verdict(self.judge)


@pytest.fixture
def graded(tmp_path, interpreter):
    """graded(text): a Graded; its children are ended after the test."""
    made: list[Graded] = []

    def graded(text: str, seed: int = 1) -> Graded:
        made.append(Graded(text, tmp_path, interpreter, seed))
        return made[-1]

    yield graded
    for one in made:
        one.run.end()
