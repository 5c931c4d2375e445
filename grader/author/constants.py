"""Results that no kernel may get away with: zeros, an input, NaN, the result of another call.

Every case must fail them. A case that accepts one of them judges nothing; it is found here before a learner finds it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from grader.comparison import compare
from grader.exercise import Exercise, Folder, load_test_file
from grader.inputs import Data, generator_for
from grader.reply import DTYPES

COMPARING = {"check", "traffic"}  # the fixtures that compare values here; others compile, or need a GPU and gigabytes


@dataclass
class Case:
    name: str
    data: tuple[Data, ...]
    bound: str
    constants: dict[str, int] = field(default_factory=dict)


@dataclass
class Recorder:
    """Stands in for the `check` and `traffic` fixtures: notes what a test asks for and judges nothing."""

    exercise: Exercise
    cases: list[Case] = field(default_factory=list)
    test: str = ""

    def __call__(self, *data: Data, bound: str | None = None, **options) -> None:
        constants = {name: value for name, value in options.items() if name.isupper()}
        self.cases.append(Case(self.test, data, bound or self.exercise.bound, constants))


def cases_of(folder: Folder) -> tuple[Exercise, list[Case]]:
    module = load_test_file(folder)
    recorder = Recorder(module.exercise)
    for name, test in vars(module).items():
        if name.startswith("test_") and COMPARING & set(inspect.signature(test).parameters):
            recorder.test = name
            test(recorder)
    return module.exercise, recorder.cases


def accepted_constants(folder: Folder, seed: int = 0) -> list[str]:
    """Complaints: which case would accept which constant."""
    exercise, cases = cases_of(folder)
    complaints = []
    for case in cases:
        for dtype in exercise.dtypes:
            inputs = _inputs(case, dtype, seed)
            exact = [tensor.double() for tensor in inputs]
            ref = exercise.reference(*exact)
            for name, candidate in _candidates(exercise, case, dtype, seed, inputs, ref):
                if candidate.numel() and compare(candidate, ref, case.bound, exact).right:
                    complaints.append(f"{case.name} ({dtype}) accepts {name} in place of the result")
    return complaints


def _inputs(case: Case, dtype: str, seed: int) -> list[torch.Tensor]:
    return [
        data.tensor(DTYPES[dtype], generator_for(seed, case.name, dtype, number))
        for number, data in enumerate(case.data)
    ]


def _candidates(
    exercise: Exercise, case: Case, dtype: str, seed: int, inputs: list[torch.Tensor], ref: torch.Tensor
) -> Iterator[tuple[str, torch.Tensor]]:
    fresh = torch.empty(ref.shape, dtype=DTYPES[dtype])
    yield "zeros", fresh.zero_().clone()
    yield "NaN", fresh.fill_(torch.nan).clone()
    if inputs[0].numel() > 1:
        yield "the input's mean", fresh.fill_(float(inputs[0].double().mean())).clone()
    before = exercise.reference(*(tensor.double() for tensor in _inputs(case, dtype, seed + 1)))
    if before.shape == ref.shape and not torch.equal(before, ref):
        yield "the previous result", before.to(fresh.dtype)
    for name, tensor in zip(exercise.arguments, inputs):
        # An input that is the right result (a copy, a softmax of one column of ones) proves nothing by passing.
        same = tensor.shape == ref.shape and torch.equal(tensor.double().nan_to_num(), ref.nan_to_num())
        if tensor.shape == ref.shape and not same:
            yield f"{name} itself", tensor.contiguous()
