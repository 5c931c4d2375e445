"""Medals: a kernel that passed its gate compared with the shipped solution, both timed in the same run.

The gate is bronze. Silver and gold ask for a part of the solution's own share of the anchor, by the first stage of the
sequential rule of speed_rule.py: where five samples of each leave it open, the lower medal is given.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import statistics
from collections.abc import Callable, Iterator

from grader.course.trial import Trial
from grader.explain.medal_words import BRONZE, GOLD, LEAST_OF_SOLUTION, SILVER, Medal
from grader.gpu.answers import Measurement
from grader.gpu.plan import BadPlan, PackedPlan
from grader.gpu.pool.replay_process import ReplayEnded
from grader.judging.run import Run
from grader.judging.speed_rule import FAST, MORE, SLOW, STAGES, Decision, decide, distance_of
from grader.processes.faults import ChildEnded


class WrongWhileTimed(Exception):
    """A sample's result was wrong; the message says in which way."""


MOST_SAMPLES = STAGES[0]  # of each kernel
SAMPLES_OF = Callable[[Run, PackedPlan], Iterator[Measurement]]


def medal_after(
    run: Run, trial: Trial, yours: list[float], more: Iterator[Measurement], sampled: SAMPLES_OF
) -> Medal | None:
    """Returns the medal of a kernel that was fast enough; None where there is no solution to compare it with.

    yours: the kernel's shares of the anchor so far; more: yields further samples of it; sampled: yields samples of
    another kernel of the same call. Raises GpuBusy; WrongWhileTimed and ReplayEnded for a sample of yours.
    """
    if run.trusted or not run.folder.solution_file.exists():
        return None
    if run.submission.source == run.folder.solution_file.read_bytes():
        return Medal(GOLD, 1.0)
    pairs = _pairs(run, trial, yours, more, sampled, lambda *pairs: bool(medal_of(*pairs)))
    return _medal(*pairs) if pairs else None


def compared_with_solution(
    run: Run, trial: Trial, yours: list[float], more: Iterator[Measurement], sampled: SAMPLES_OF,
    least: float,
) -> tuple[str, Medal] | None:  # fmt: skip
    """Returns FAST, SLOW or MORE, for a kernel that has to reach `least` of the solution's speed, and its medal.

    MORE: it is too close to that speed, or too noisy, to decide. None where there is no solution to compare it with.
    Other arguments and exceptions are as for medal_after.
    """
    if not run.folder.solution_file.exists():
        return None

    def is_told(yours: list[float], theirs: list[float]) -> bool:
        outcome = _decided(yours, theirs, least).outcome
        return outcome == SLOW or outcome == FAST and bool(medal_of(yours, theirs))

    pairs = _pairs(run, trial, yours, more, sampled, is_told)
    return (_decided(*pairs, least).outcome, _medal(*pairs)) if pairs else None


def _pairs(
    run: Run, trial: Trial, yours: list[float], more: Iterator[Measurement], sampled: SAMPLES_OF,
    is_told: Callable[[list[float], list[float]], bool],
) -> tuple[list[float], list[float]] | None:  # fmt: skip
    """Returns as many shares of the kernel as of the solution, enough to decide or all that may be drawn.

    None where no solution can be timed, or a sample of it is of no use. Raises GpuBusy; WrongWhileTimed and ReplayEnded
    for a sample of yours.
    """
    yours = [*yours[:MOST_SAMPLES], *_shares(more, MOST_SAMPLES - len(yours))]
    solution = Run(run.folder, "solutions", run.seed, run.model, run.sandboxed, run.replays, trusted=True)
    theirs: list[float] = []
    try:
        packed = solution.launch_plan(trial)
        if packed.plan.error is not None or packed.plan.refusals:
            return None
        with contextlib.suppress(WrongWhileTimed):
            for share in _shares(sampled(solution, packed), len(yours)):
                theirs.append(share)
                if len(theirs) == len(yours) or is_told(yours[: len(theirs)], theirs):
                    return yours[: len(theirs)], theirs
        return None
    except (BadPlan, ChildEnded, ReplayEnded):  # the learner's kernel is not to blame
        return None
    finally:
        solution.end()


def _medal(yours: list[float], theirs: list[float]) -> Medal:
    return Medal(medal_of(yours, theirs) or BRONZE, statistics.median(yours) / statistics.median(theirs))


def medal_of(yours: list[float], solution: list[float]) -> str:
    """Returns the medal that pairs of samples show; "" if they are close and another pair may decide."""
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
