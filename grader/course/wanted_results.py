"""The results that a call has to give, each with the dtype and the bound that it has in this call."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grader.course.exercise import Result
from grader.course.trial import Trial
from grader.numerics.bounds import Bound
from grader.numerics.data_sets import Data
from grader.numerics.roundoff import EXACT, UNJUDGED


@dataclass(frozen=True)
class Wanted:
    """A result that a call has to give. `stated_bound`: what the exercise states, whatever holds in this call."""

    name: str
    dtype: torch.dtype
    bound: Bound
    stated_bound: Bound
    place: int | None  # among the returned results; None: an argument that is updated and not returned
    is_argument: bool  # filled, or updated in place
    is_updated: bool
    is_alone: bool  # the call has no other result


def wanted_of(trial: Trial) -> list[Wanted]:
    """Returns the results that a trial has to give, in the order in which the reference gives them."""
    exercise = trial.exercise
    returned = exercise.returned
    wanted = []
    for place, result in enumerate(exercise.results):
        dtype, bound = _dtype(trial, result), trial.bounds.get(result.name) or trial.bound
        stated = exercise.bounds[result.name]
        if not dtype.is_floating_point:
            bound, stated = (one if one in (*EXACT, UNJUDGED) else "exact" for one in (bound, stated))
        wanted.append(Wanted(
            result.name, dtype, bound, stated, place if place < len(returned) else None,
            result.name in exercise.arguments, result.name in exercise.updates, len(exercise.results) == 1,
        ))  # fmt: skip
    return wanted


def rounds_anything(trial: Trial) -> bool:
    """Returns whether a right kernel may round in this call: copies and whole numbers leave nothing to round."""
    return any(one.bound != "bits" and one.dtype.is_floating_point for one in wanted_of(trial))


def _dtype(trial: Trial, result: Result) -> torch.dtype:
    exercise = trial.exercise
    if result.name in exercise.arguments:
        stated = trial.data[exercise.arguments.index(result.name)]
        return stated.dtype_in(trial.dtype) if isinstance(stated, Data) else trial.dtype
    return getattr(torch, result.dtype) if result.dtype else trial.dtype
