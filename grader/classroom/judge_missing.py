"""Judges the texts of a class that need it: texts without a result, and texts that are to be judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from grader.classroom.patience import patiently
from grader.classroom.result_store import Results, Text
from grader.classroom.student_work import StudentWork
from grader.files import remove_unfinished
from grader.processes import bubblewrap

Say = Callable[[str], None]


@dataclass(frozen=True)
class How:
    """The arguments of judging. `isolation`: the level at which submissions are isolated.

    `jobs`: how many texts are judged side by side; None for as many as are useful. `scheduler`: the address of a Dask
    scheduler whose workers judge; "" for this machine. `mend`: whether feedback tells the line in which one change
    makes wrong calls right.
    """

    isolation: str = bubblewrap.AUTO
    jobs: int | None = None
    scheduler: str = ""
    mend: bool = False


ENCRYPTED = "tls://"  # begins the address of a scheduler that asks for certificates


@dataclass(frozen=True)
class Students:
    """The students that an option names; all of them where `everyone` is true."""

    names: tuple[str, ...] = ()
    everyone: bool = False

    def __contains__(self, student: str) -> bool:
        return self.everyone or student in self.names


def check_isolation(how: How) -> None:
    """Raises ClickException where hand-ins cannot be isolated as asked, or the isolation is too weak for a cluster."""
    if how.scheduler and how.isolation != bubblewrap.STRICT and not how.scheduler.startswith(ENCRYPTED):
        raise click.ClickException(
            "--scheduler: a Dask scheduler and its workers run what anyone sends who reaches their ports, so a hand-in "
            "that gets out of its process could have all of them. Nothing was graded. Next: add --isolation strict, or "
            f"give Dask certificates, and the address as {ENCRYPTED}HOST:8786."
        )
    if how.isolation == bubblewrap.STRICT and not how.scheduler and bubblewrap.missing():
        raise click.ClickException(f"--isolation strict: {bubblewrap.missing()}. Nothing was graded.")


def judge_missing(
    graded: Sequence[StudentWork],
    students: Students,
    results: Results,
    how: How,
    say: Say,
    solutions: Sequence[Text] = (),
) -> None:
    """Judges each text that has no result, and anew each text of `students`; says how many texts there are.

    `solutions`: nobody handed them in, and they have to pass the hidden cases.
    """
    from grader.classroom.cluster.engine import JudgingPlace, judge_all
    from grader.classroom.cluster.live import View

    texts = {one.text.key: one.text for one in graded if one.text is not None}
    again = {one.text.key for one in graded if one.text is not None and one.student in students}
    place = JudgingPlace(how.scheduler, how.jobs)
    gpu = place.has_gpu()
    missing = patiently(lambda: [t for key, t in texts.items() if key in again or results.is_missing(t, gpu)], say)
    hand_ins, different = f"{len(graded)} hand-in{'s' * (len(graded) != 1)}", f"{len(texts)} different text"
    say(f"{hand_ins}, {different}{'s' * (len(texts) != 1)}, {len(missing)} to judge{_how(missing, how)}.")
    more = [text for text in solutions if text.key not in texts and results.is_missing(text, gpu)]
    if more:
        say(f"Judged with them, with the hidden cases: the solution of {', '.join(t.exercise.id for t in more)}.")
    missing += more
    if missing:
        results.folder.mkdir(parents=True, exist_ok=True)
        patiently(lambda: remove_unfinished(results.folder), say)
        with View(len(missing), say) as view:
            judge_all(missing, results, how.isolation, place, view, how.mend)


def _how(missing: list[Text], how: How) -> str:
    return f"; {_level(how)}" if missing else ""


def _level(how: How) -> str:
    if how.scheduler:
        return f"by the workers of {how.scheduler}"
    if bubblewrap.wanted(how.isolation):
        return "each in a sandbox of its own"
    why = f": {bubblewrap.missing()}" if how.isolation != bubblewrap.LIMITS else ""
    return f"each with process limits only{why}"
