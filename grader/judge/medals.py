"""Medals: a kernel that passed its gate compared with the shipped solution, both timed in the same run.

The gate is bronze. Silver and gold ask for a part of the solution's own share of the anchor, by the sequential rule of
speed_rule.py, whose later stages are not taken: where five samples of each leave it open, the lower medal is given.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import statistics
from collections.abc import Callable, Iterator

from grader.course.exercise import Exercise
from grader.course.trial import Trial
from grader.explain.medal_words import BRONZE, GOLD, LEAST_OF_SOLUTION, SILVER, Medal
from grader.gpu.answers import Measurement
from grader.gpu.plan import BadPlan, Recording
from grader.gpu.pool.replay_process import ReplayEnded
from grader.judge.run import Run
from grader.judge.speed_rule import FAST, MORE, STAGES, Decision, decide, distance_of
from grader.processes.faults import ChildEnded


class WrongWhileTimed(Exception):
    """A sample's result was wrong; its text says in which way."""


MOST_SAMPLES = STAGES[0]  # of each kernel
SAMPLES_OF = Callable[[Run, Recording], Iterator[Measurement]]


def medal_after(
    run: Run, exercise: Exercise, trial: Trial, yours: list[float], more: Iterator[Measurement], sampled: SAMPLES_OF
) -> Medal | None:
    """Returns the medal of a kernel that was fast enough; None where there is no solution to compare it with.

    yours: its shares of the anchor so far; more: gives further samples of it; sampled: gives samples of another kernel
    of the same call. Raises GpuBusy, and WrongWhileTimed for a sample of yours.
    """
    if run.trusted or not run.folder.solution_file.exists():
        return None
    solution = Run(run.folder, "solutions", run.seed, run.model, run.sandboxed, run.replays, trusted=True)
    try:
        if run.submission.source == solution.submission.source:
            return Medal(GOLD, 1.0)
        recording = solution.recording(exercise, trial)
        if recording.plan.error is not None or recording.plan.refusals:
            return None
        yours = [*yours[:MOST_SAMPLES], *_shares(more, MOST_SAMPLES - len(yours))]
        return _compared(yours, sampled(solution, recording))
    except (BadPlan, ChildEnded, ReplayEnded):  # the kernel has passed all the same
        return None
    finally:
        solution.end()


def _compared(yours: list[float], samples: Iterator[Measurement]) -> Medal | None:
    """Draws samples of the solution until they tell; None where one of them is of no use."""
    theirs: list[float] = []
    with contextlib.suppress(WrongWhileTimed):
        for share in _shares(samples, len(yours)):
            theirs.append(share)
            if name := medal_of(yours[: len(theirs)], theirs):
                return Medal(name, statistics.median(yours) / statistics.median(theirs))
    return None


def medal_of(yours: list[float], solution: list[float]) -> str:
    """Returns what pairs of samples say, or "" where they are close and another pair may tell."""
    gold, silver = (_decided(yours, solution, LEAST_OF_SOLUTION[name]) for name in (GOLD, SILVER))
    if gold.outcome == FAST:
        return GOLD
    if MORE in (gold.outcome, silver.outcome) and len(solution) < MOST_SAMPLES:
        return ""
    return SILVER if silver.outcome == FAST else BRONZE


def _decided(yours: list[float], solution: list[float], least: float) -> Decision:
    return decide([distance_of(share, least * other) for share, other in zip(yours, solution, strict=True)])


def _shares(samples: Iterator[Measurement], count: int) -> Iterator[float]:
    """Yields the shares of `count` samples; a sample without enough valid rounds ends them. Raises WrongWhileTimed."""
    for sample in itertools.islice(samples, count):
        if sample.wrong:
            raise WrongWhileTimed(sample.wrong)
        if math.isnan(sample.share):
            return
        yield sample.share
