"""The learner's standing: the state of each exercise, and the exercise that is next."""

from __future__ import annotations

from pathlib import Path

import click

from grader.course.folder import Folder, all_folders
from grader.explain.verdict import FAIL
from grader.progress import progress
from grader.progress.progress import Progress, Record

NOT_STARTED, FAILING = "not started", "failing"
CORE_PASSED, CORE_BROKEN = "core passed", "core passed, now failing"
ALL_PASSED = "Next: every exercise is passed. course.md says where to go from here."
PASSED, BROKEN_AGAIN = "passed", "passed, now failing"


def read_progress(root: Path) -> Progress:
    """Returns the progress. Raises click.ClickException if it cannot be read."""
    try:
        return progress.read(root)
    except OSError as error:
        raise click.ClickException(f"{root / progress.NAME} cannot be read: {error.strerror}.") from None


def state(record: Record) -> str:
    if record.passed:
        return BROKEN_AGAIN if record.outcome == FAIL else PASSED
    if record.core:
        return CORE_PASSED if record.level else CORE_BROKEN
    return FAILING if record.runs else NOT_STARTED


def next_exercise(root: Path, done: Progress) -> Folder | None:
    """Returns the first exercise whose core was never passed, or else the first never passed; None if there is none."""
    left = [folder for folder in all_folders(root) if not done.of(folder.id).passed]
    return next((folder for folder in left if not done.of(folder.id).core), left[0] if left else None)


def current_exercise(root: Path, done: Progress) -> Folder | None:
    """Returns the exercise that the learner works on: the exercise of the last run if that failed, or else the next."""
    failing = [f for f in all_folders(root) if done.of(f.id).last and done.of(f.id).outcome == FAIL]
    latest = max((r.last for r in done.records.values() if r.last), default=None)
    return next((f for f in failing if done.of(f.id).last == latest), None) or next_exercise(root, done)


def exercise_at_hand(root: Path, done: Progress) -> Folder | None:
    """Returns the exercise that the learner works on, or the next exercise if its core is passed."""
    folder = current_exercise(root, done)
    if folder is not None and state(done.of(folder.id)) == CORE_PASSED:
        return next_exercise(root, done)
    return folder


def none_left(command: str) -> click.ClickException:
    """Returns the refusal of a command that needs an exercise when all are passed."""
    return click.ClickException(f"Every exercise is passed. Name one: course {command} 03")


def next_after(folder: Folder, done: Progress) -> Folder | None:
    """Returns the exercise after a passed exercise: the next on the path, or if it is passed too, any that is left."""
    following = folder.next()
    return next_exercise(folder.root, done) if following is None or done.of(following.id).passed else following


def next_line(root: Path, done: Progress) -> str:
    """Returns the next action, which is the last line of a command."""
    from grader.show.terminal import shown

    folder, at_hand = current_exercise(root, done), exercise_at_hand(root, done)
    if folder is None or at_hand is None:
        return ALL_PASSED
    if folder != at_hand:
        return f"{_work_on(at_hand, done)}. To finish {folder.id}: pytest {shown(folder.path)}"
    return _work_on(folder, done)


def _work_on(folder: Folder, done: Progress) -> str:
    from grader.show.terminal import shown

    if done.of(folder.id).runs:
        return f"Next: edit {shown(folder.learner_file)} and run pytest {shown(folder.path)}"
    return f"Next: {folder.id}. Read it with: course open {folder.number}"
