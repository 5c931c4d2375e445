"""All texts of a class that need the judge: those without a result, those to be judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from grader.classroom.graded import Graded
from grader.classroom.patience import patiently
from grader.classroom.results import Results, Text
from grader.files import remove_unfinished
from grader.processes import bubblewrap

Say = Callable[[str], None]


@dataclass(frozen=True)
class How:
    """How to judge: shut in how, how many side by side (None: as many as do good), and on which Dask scheduler's
    workers ("": on this machine).
    """

    isolation: str = bubblewrap.AUTO
    jobs: int | None = None
    scheduler: str = ""


ENCRYPTED = "tls://"  # how the address of a scheduler begins to which only certificates lead


@dataclass(frozen=True)
class Students:
    """Those that an option names; `everyone` where it names none."""

    names: tuple[str, ...] = ()
    everyone: bool = False

    def __contains__(self, student: str) -> bool:
        return self.everyone or student in self.names


def check_isolation(how: How) -> None:
    """Raises ClickException where hand-ins cannot be shut in as is asked, or not as a cluster needs it."""
    if how.scheduler and how.isolation != bubblewrap.STRICT and not how.scheduler.startswith(ENCRYPTED):
        raise click.ClickException(
            "--scheduler: a Dask scheduler and its workers run what anyone sends who reaches their ports, so a hand-in "
            "that gets out of its process could have all of them. Nothing was graded. Next: add --isolation strict, or "
            f"give Dask certificates, and the address as {ENCRYPTED}HOST:8786."
        )
    if how.isolation == bubblewrap.STRICT and not how.scheduler and bubblewrap.missing():
        raise click.ClickException(f"--isolation strict: {bubblewrap.missing()}. Nothing was graded.")


def judge_missing(
    graded: Sequence[Graded], students: Students, results: Results, how: How, say: Say, beside: Sequence[Text] = ()
) -> None:
    """Judges each text that has no result, and those of `students` anew. Says what there is to do, and does it.

    `beside`: solutions, which nobody handed in and which have to pass the hidden cases.
    """
    from grader.classroom.engine import Place, judge_all
    from grader.classroom.live import View

    texts = {one.text.key: one.text for one in graded if one.text is not None}
    again = {one.text.key for one in graded if one.text is not None and one.student in students}
    place = Place(how.scheduler, how.jobs)
    gpu = place.has_gpu()
    missing = patiently(lambda: [t for key, t in texts.items() if key in again or results.is_missing(t, gpu)], say)
    hand_ins, different = f"{len(graded)} hand-in{'s' * (len(graded) != 1)}", f"{len(texts)} different text"
    say(f"{hand_ins}, {different}{'s' * (len(texts) != 1)}, {len(missing)} to judge{_how(missing, how)}.")
    more = [text for text in beside if text.key not in texts and results.is_missing(text, gpu)]
    if more:
        say(f"Judged with them, with the hidden cases: the solution of {', '.join(t.exercise.id for t in more)}.")
    missing += more
    if missing:
        results.folder.mkdir(parents=True, exist_ok=True)
        patiently(lambda: remove_unfinished(results.folder), say)
        with View(len(missing), say) as view:
            judge_all(missing, results, how.isolation, place, view)


def _how(missing: list[Text], how: How) -> str:
    return f"; {_level(how)}" if missing else ""


def _level(how: How) -> str:
    if how.scheduler:
        return f"by the workers of {how.scheduler}"
    if bubblewrap.wanted(how.isolation):
        return "each in a sandbox of its own"
    why = f": {bubblewrap.missing()}" if how.isolation != bubblewrap.LIMITS else ""
    return f"each with process limits only{why}"
