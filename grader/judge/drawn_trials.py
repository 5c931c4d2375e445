"""The trials of a test that draws its calls: the calls of a promise that a run judges."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from grader.course.drawn_calls import drawn_calls
from grader.course.exercise import Exercise
from grader.course.large_calls import large_calls
from grader.course.promise import Call, Promise
from grader.course.trial import Trial, trial_of
from grader.course.unpromised_draws import Broken, unpromised_draws
from grader.explain.unpromised_calls import Unpromised
from grader.judge.run import Run
from grader.numerics.data_sets import seed_for
from grader.submission.whole_numbers import whole_numbers


@dataclass(frozen=True)
class DrawnTrials:
    """The trials of the test `name`, drawn from its promise with the seed of a run of the exercise."""

    exercise: Exercise
    run: Run
    name: str
    promise: Promise

    @cached_property
    def calls(self) -> list[Call]:
        """The first of the drawn calls, in an order that the seed draws: as many as the run and the promise ask for."""
        rounds = [drawn_calls(self.promise, seed, self.name, self._of_file) for seed in self._seeds]
        calls = [replace(call, number=number) for number, call in enumerate(chain.from_iterable(rounds), 1)]
        return self._share_of(calls)

    def large(self, after: int) -> list[Call]:
        """Returns the first of the calls up to the promise's limits. after: the number of the last call before them."""
        calls: list[Call] = []
        for seed in self._seeds:
            calls += large_calls(self.promise, seed, self.name, after + len(calls), self._of_file)
        return self._share_of(calls)

    def unpromised(self, after: int) -> list[tuple[Trial, Unpromised]]:
        """Returns the calls that the entry has to refuse, each with the reason and the error that it has to raise.

        Empty if the promise states no error. after: the number of the last call before them.
        """
        error = self.promise.refuses
        found: list[Broken] = []
        for seed in self._seeds if error else []:
            found += unpromised_draws(self.promise, seed, self.name, after + len(found))
        return [(self.of(one.call), Unpromised(one.because, error)) for one in found]

    @cached_property
    def _of_file(self) -> list[int]:
        return whole_numbers(self.run.submission.tree)

    @property
    def _seeds(self) -> list[int]:
        """The run's seed, then a seed derived from it for each further round."""
        return [self.run.seed, *(seed_for(self.run.seed, "round", turn) for turn in range(1, self.run.rounds))]

    def _share_of(self, calls: list[Call]) -> list[Call]:
        return calls[: math.ceil(self.run.share_of_drawn * self.promise.share * len(calls))]

    @property
    def all(self) -> list[Trial]:
        """The trials of `calls`."""
        return [self.of(call) for call in self.calls]

    def of(self, call: Call) -> Trial:
        """Returns the trial of a call. Its data are drawn under the call's number, which a simpler call keeps."""
        name = f"{self.name} {call.number}"
        return trial_of(self.exercise, name, self.promise.data(call), call.dtype, None, call.constants)
