"""Results with which no kernel may pass: zeros, NaN, an input, an input's mean, the result of another call.

Every case must reject them. A case that accepts any of them judges nothing; it is found here before a learner finds it.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from grader.course.exercise import Exercise
from grader.course.folder import Folder, load_test_file
from grader.course.trial import Trial, trial_of
from grader.course.wanted_results import Wanted, wanted_of
from grader.judging.uses import CheckUse, TrafficUse, uses_asked
from grader.numerics.arguments import Argument, exact, tensors_of
from grader.numerics.comparison import compare


def accepted_constants(folder: Folder, seed: int = 0) -> list[str]:
    """Returns a complaint for each constant that a case would accept, as all of its results if there are several."""
    module = load_test_file(folder)
    exercise, complaints = module.exercise, []
    # These compare whole results without a GPU.
    cases: list[CheckUse | TrafficUse] = uses_asked(module, CheckUse, TrafficUse)
    for case in cases:
        stated = case.dtypes if isinstance(case, CheckUse) else ()
        for dtype in stated or exercise.dtypes:
            trial = trial_of(exercise, case.test, case.data, dtype, case.bound)
            inputs = trial.inputs(seed)
            given, place = exact(inputs), "the result" if len(exercise.results) == 1 else "each result"
            taken = [
                _accepted(trial, wanted, inputs, ref, before, exercise)
                for wanted, ref, before in zip(
                    wanted_of(trial),
                    exercise.expected(given),
                    exercise.expected(exact(trial.inputs(seed + 1))),
                )
            ]
            accepted = (name for name in taken[0] if all(name in other for other in taken))
            complaints += [f"{case.test} ({dtype}) accepts {name} in place of {place}" for name in accepted]
    return complaints


def _accepted(
    trial: Trial, wanted: Wanted, inputs: list[Argument], ref: torch.Tensor, before: torch.Tensor, exercise: Exercise
) -> list[str]:
    """Returns the names of the constants that would pass as the result. `before`: the result for other inputs."""
    return [
        name
        for name, candidate in _candidates(wanted, dict(tensors_of(exercise.arguments, inputs)), ref, before)
        if candidate.numel() and compare(candidate, ref, wanted.bound, exact(inputs)).right
    ]


def _candidates(
    wanted: Wanted, inputs: dict[str, torch.Tensor], ref: torch.Tensor, before: torch.Tensor
) -> Iterator[tuple[str, torch.Tensor]]:
    fresh = torch.empty(ref.shape, dtype=wanted.dtype)
    first = next(iter(inputs.values()))
    yield "zeros", fresh.zero_().clone()
    if wanted.dtype.is_floating_point:
        yield "NaN", fresh.fill_(torch.nan).clone()
        if first.numel() > 1:
            yield "the input's mean", fresh.fill_(float(first.double().mean())).clone()
    if before.shape == ref.shape and not torch.equal(before, ref):
        yield "the previous result", before.to(fresh.dtype)
    for name, tensor in inputs.items():
        # An input that is the right result (a copy, a softmax of one column of ones) proves nothing by passing.
        same = tensor.shape == ref.shape and torch.equal(tensor.double().nan_to_num(), ref.double().nan_to_num())
        if tensor.shape == ref.shape and not same:
            yield f"{name} itself", tensor.to(fresh.dtype).contiguous()
