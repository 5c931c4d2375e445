"""A test that draws its calls: the calls of a promise that a run judges, and the verdict on them.

A stated call can be foreseen, and a kernel can be made to pass it alone. Calls that nobody knows before the run hold a
submission to all that its lesson promises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from grader.course.calls_toward import calls_toward, calls_within
from grader.course.drawn_calls import drawn_calls
from grader.course.exercise import Exercise
from grader.course.large_calls import is_sampled, large_calls
from grader.course.promise import DrawnCall, StatedPromise
from grader.course.simpler_calls import smallest
from grader.course.trial import Trial, trial_of
from grader.course.unpromised_draws import UnpromisedDraw, unpromised_draws
from grader.explain.unpromised_calls import Unpromised
from grader.explain.verdict import FAIL, PASS, UNJUDGED, Verdict
from grader.judging.in_samples import SOME_PROGRAMS, TOO_LONG
from grader.judging.run import Run
from grader.numerics.data_sets import seed_for
from grader.submission.branches import branches_of
from grader.submission.whole_numbers import whole_numbers

if TYPE_CHECKING:
    from grader.judging.judge import Judge

MOST_SIMPLER = 12  # calls that are tried to find a simpler one that fails, too
NOT_SIMPLER = ("file", "region", "ended")  # kinds of failures that a simpler call would not explain better


@dataclass(frozen=True)
class DrawnTrials:
    """The trials of the test `name`, drawn from its promise with the seed of a run of the exercise."""

    exercise: Exercise
    run: Run
    name: str
    promise: StatedPromise

    @cached_property
    def calls(self) -> list[DrawnCall]:
        """The first of the drawn calls, in an order that the seed draws: as many as the run and the promise ask for.

        Then calls toward branches of the file that none of these comes to.
        """
        rounds = [drawn_calls(self.promise, seed, self.name, self._of_file) for seed in self._seeds]
        calls = [replace(call, number=number) for number, call in enumerate(chain.from_iterable(rounds), 1)]
        calls = self._share_of(calls)
        return calls + self._toward_branches(calls)

    def large(self, after: int) -> list[DrawnCall]:
        """Returns the first of the calls up to the promise's limits. after: the number of the last call before them."""
        calls: list[DrawnCall] = []
        for seed in self._seeds:
            calls += large_calls(self.promise, seed, self.name, after + len(calls), self._of_file)
        return self._share_of(calls)

    def unpromised(self, after: int) -> list[tuple[Trial, Unpromised]]:
        """Returns the calls that the entry has to refuse, each with the reason and the error that it has to raise.

        Empty if the promise states no error. after: the number of the last call before them.
        """
        error = self.promise.refuses
        draws: list[UnpromisedDraw] = []
        for seed in self._seeds if error else []:
            draws += unpromised_draws(self.promise, seed, self.name, after + len(draws))
        return [(self.of(draw.call), Unpromised(draw.because, error)) for draw in draws]

    @cached_property
    def _of_file(self) -> list[int]:
        return whole_numbers(self.run.submission.tree)

    def _toward_branches(self, calls: list[DrawnCall]) -> list[DrawnCall]:
        """Returns calls toward branches of the file that none of these comes to; none if the search fails.

        A file can be written to make it fail or take long. It is judged by the other calls then.
        """
        try:
            branches = branches_of(self.run.submission.tree, self.exercise.entry, self.exercise.arguments)
            of_run = self.promise, self.run.seed, self.name
            toward = calls_toward(*of_run, calls, branches)
            return toward + calls_within(*of_run, [*calls, *toward], branches)
        except Exception:
            return []

    @property
    def _seeds(self) -> list[int]:
        """The run's seed, then a seed derived from it for each further round."""
        return [self.run.seed, *(seed_for(self.run.seed, "round", turn) for turn in range(1, self.run.rounds))]

    def _share_of(self, calls: list[DrawnCall]) -> list[DrawnCall]:
        return calls[: math.ceil(self.run.share_of_drawn * self.promise.share * len(calls))]

    @property
    def all(self) -> list[Trial]:
        """The trials of `calls`."""
        return [self.of(call) for call in self.calls]

    def of(self, call: DrawnCall) -> Trial:
        """Returns the trial of a call. Its data are drawn under the call's number, which a simpler call keeps."""
        name = f"{self.name} {call.number}"
        return trial_of(self.exercise, name, self.promise.data(call), call.dtype, None, call.constants)


def drawn_verdict(judge: Judge, trials: DrawnTrials) -> Verdict:
    """Judges the calls drawn for a promise. On failure, reports the simplest call that fails the same way."""
    verdict, largest, calls = Verdict(PASS), 0.0, trials.calls
    for call in calls:
        verdict = _of_values(judge, trials.of(call))
        largest = max(largest, verdict.figures.get("largest_error", 0.0))
        if verdict.outcome != PASS:
            break
    if verdict.outcome == PASS:
        return _outside_promise(judge, trials, len(calls)) or _all_right(len(calls), largest)
    if verdict.outcome == FAIL and verdict.kind not in NOT_SIMPLER:
        verdict = _simplest(judge, trials, call, verdict)
    return judge.cancel_if_wrong(verdict)


def _of_values(judge: Judge, trial: Trial) -> Verdict:
    return judge.judged(trial, lambda trial: judge.values(trial, blame=False)[0])


def _outside_promise(judge: Judge, trials: DrawnTrials, after: int) -> Verdict | None:
    """Returns what is wrong with calls outside of the promise or up to its limits, or why these are not judged."""
    refused = (judge.judged(trial, judge.refusal(refusal)) for trial, refusal in trials.unpromised(after))
    large = (_large(judge, trials, call) for call in trials.large(after))
    return next((one for one in chain(refused, large) if one.outcome == FAIL or one.id == UNJUDGED), None)


def _large(judge: Judge, trials: DrawnTrials, call: DrawnCall) -> Verdict:
    if not is_sampled(trials.promise, call):
        # Once: what differs from call to call shows in smaller calls, too.
        return judge.judged(trials.of(call), lambda trial: judge.values(trial, twice=False, blame=False)[0])
    verdict = judge.judged(trials.of(call), lambda trial: _sample(judge, trial))
    if verdict.note == TOO_LONG and trials.promise.blocks:  # a program does less in small blocks
        small = trials.of(replace(call, constants=trials.promise.blocks[0]))
        verdict = judge.judged(small, lambda trial: _sample(judge, trial))
    return verdict


def _sample(judge: Judge, trial: Trial) -> Verdict:
    verdict = judge.in_a_sample(trial, SOME_PROGRAMS)
    return judge.in_full(trial) if verdict.id == UNJUDGED and judge.run.replays is not None else verdict


def _simplest(judge: Judge, trials: DrawnTrials, call: DrawnCall, verdict: Verdict) -> Verdict:
    """Returns the verdict on the simplest call that fails in the same way as this one.

    A guess gives way to any failure that a simpler call shows.
    """
    simplest = verdict

    def fails(simpler: DrawnCall) -> bool:
        nonlocal simplest
        other = _of_values(judge, trials.of(simpler))
        same = other.outcome == FAIL and other.kind not in NOT_SIMPLER
        if same and (other.id == simplest.id or simplest.kind == "guess"):
            simplest = other
            return True
        return False

    smallest(trials.promise, call, fails, MOST_SIMPLER)
    return simplest


def _all_right(calls: int, largest: float) -> Verdict:
    """Returns the pass of this number of drawn calls. largest: their largest error, as a share of its bound."""
    note = f"{calls} calls" + (f", largest error {largest:.2f} of the bound" if largest else "")
    return Verdict(PASS, note=note, figures={"largest_error": largest})
