"""A judge of an exercise that has no folder of its own: an entry stated here, and files that a test writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grader import Exercise
from grader.course.folder import Folder
from grader.judging.judge import Judge
from grader.judging.run import Run


def grading(folder: Path, exercises: dict[str, Exercise], finished=lambda text: text) -> Iterator:
    """Yields judged(file, *changes) -> Judge of this file, a key of `exercises`; ends its children afterwards.

    finished: makes a file of the text after its changes, each an old text that stands there once and a new one.
    """
    runs: list[Run] = []

    def judged(file: str, *changes: tuple[str, str]) -> Judge:
        text = finished(file)
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = folder / "exercises" / "90_entry"
        path.mkdir(parents=True, exist_ok=True)
        submission = path / "entry.py"
        submission.write_text(text)
        runs.append(Run(Folder(path), str(submission), seed=1))
        return Judge(exercises[file], runs[-1])

    yield judged
    for run in runs:
        run.end()
