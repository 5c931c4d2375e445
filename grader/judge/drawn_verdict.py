"""The verdict on the calls that a seed draws from a promise, and on calls up to its limits and outside of it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from grader.course.promise import Call
from grader.course.simpler_calls import smallest
from grader.course.trial import Trial
from grader.explain.verdict import FAIL, PASS, UNJUDGED, Verdict
from grader.judge.drawn_trials import DrawnTrials
from grader.judge.in_samples import SOME_PROGRAMS
from grader.judge.seriousness import all_right

if TYPE_CHECKING:
    from grader.judge.judge import Judge

MOST_SIMPLER = 12  # calls that are tried to find a simpler one that fails, too
NOT_SIMPLER = ("file", "region", "ended")  # kinds of failures that a simpler call would not explain better


def drawn_verdict(judge: Judge, trials: DrawnTrials) -> Verdict:
    """Judges the calls drawn for a promise. On failure, reports the simplest call that fails the same way."""
    verdict, largest, calls = Verdict(PASS), 0.0, trials.calls
    for call in calls:
        verdict = _of_values(judge, trials.of(call))
        largest = max(largest, verdict.figures.get("largest_error", 0.0))
        if verdict.outcome != PASS:
            break
    if verdict.outcome == PASS:
        return _beyond(judge, trials, len(calls)) or all_right(len(calls), largest)
    if verdict.outcome == FAIL and verdict.kind not in NOT_SIMPLER:
        verdict = _simplest(judge, trials, call, verdict)
    return judge.cancel_if_wrong(verdict)


def _of_values(judge: Judge, trial: Trial) -> Verdict:
    return judge.judged(trial, lambda trial: judge.values(trial, blame=False)[0])


def _beyond(judge: Judge, trials: DrawnTrials, after: int) -> Verdict | None:
    """Returns what is wrong with calls outside of the promise or up to its limits, or why these are not judged."""
    refused = (judge.judged(trial, judge.refusal(asked)) for trial, asked in trials.unpromised(after))
    large = (judge.judged(trials.of(call), lambda trial: _large(judge, trial)) for call in trials.large(after))
    return next((one for one in chain(refused, large) if one.outcome == FAIL or one.id == UNJUDGED), None)


def _large(judge: Judge, trial: Trial) -> Verdict:
    verdict = judge.in_a_sample(trial, SOME_PROGRAMS)
    return judge.in_full(trial) if verdict.id == UNJUDGED and judge.run.replays is not None else verdict


def _simplest(judge: Judge, trials: DrawnTrials, call: Call, verdict: Verdict) -> Verdict:
    """Returns the verdict on the simplest call that fails in the same way as this one.

    A guess gives way to any failure that a simpler call shows.
    """
    found = verdict

    def fails(simpler: Call) -> bool:
        nonlocal found
        other = _of_values(judge, trials.of(simpler))
        same = other.outcome == FAIL and other.kind not in NOT_SIMPLER
        if same and (other.id == found.id or found.kind == "guess"):
            found = other
            return True
        return False

    smallest(trials.promise, call, fails, MOST_SIMPLER)
    return found
