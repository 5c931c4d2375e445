"""An instructor's hidden cases as tests of an exercise, and what a learner may read of them."""

from __future__ import annotations

import pytest
import torch

from grader.course.exercise import Exercise
from grader.course.hidden_cases import HiddenCase
from grader.explain.verdict import FAIL, Verdict
from grader.numerics.arguments import Argument, DataOrNumber, exact
from grader.numerics.data_sets import Data
from grader.numerics.roundoff import EXACT
from grader.sentences import Sentence


class Hidden(Sentence):
    FAILS = "A hidden case fails: {case}. Its data are not shown."


def items(cases: list[HiddenCase], test: pytest.Function) -> list[pytest.Function]:
    """Returns the cases as tests in this test's module. Raises UsageError for a case that does not fit the entry."""
    module = test.getparent(pytest.Module)
    if module is None:
        raise LookupError(f"{test.nodeid} stands in no module")
    for case in cases:
        _refuse_unfit(case, module.obj.exercise)
    return [_item(case, module) for case in cases]


def _refuse_unfit(case: HiddenCase, exercise: Exercise) -> None:
    names, results = exercise.arguments, [result.name for result in exercise.results]
    if isinstance(case.bound, dict) and (unknown := sorted(set(case.bound) - set(results))):
        raise pytest.UsageError(
            f"hidden case {case.name!r}: a bound is given for {unknown[0]}, and {exercise.entry} has the results "
            f"{', '.join(results)}."
        )
    for bound in case.bound.values() if isinstance(case.bound, dict) else filter(None, [case.bound]):
        if bound not in EXACT:
            raise pytest.UsageError(
                f"hidden case {case.name!r}: bound {bound!r} is unknown; there are {', '.join(EXACT)}. Without one the "
                "exercise's bounds hold."
            )
    if len(case.data) != len(names):
        raise pytest.UsageError(
            f"hidden case {case.name!r}: {len(case.data)} data sets are given, and "
            f"{exercise.entry} takes {len(names)} arguments: {', '.join(names)}."
        )
    try:
        exercise.reference(*exact([_zeros(data) for data in case.data]))
    except Exception as error:  # what torch says of shapes that do not go together
        shapes = ", ".join(f"{name} {_shape_text(data)}" for name, data in zip(names, case.data))
        reason = str(error).partition("\n")[0].rstrip(".")
        raise pytest.UsageError(
            f"hidden case {case.name!r}: {exercise.entry} has no result for {shapes}: {reason}."
        ) from None


def _zeros(data: DataOrNumber) -> Argument:
    """Returns zeros for a data set, since 0 is a valid index as well, and a number as it is."""
    return torch.zeros(data.shape, dtype=data.dtype_in(torch.float32)) if isinstance(data, Data) else data


def _shape_text(data: DataOrNumber) -> str:
    return str(list(data.shape)) if isinstance(data, Data) else f"= {data}"


def shown(name: str, verdict: Verdict) -> Verdict:
    """Returns the part of a hidden case's verdict that a learner may read: the outcome, and not the data."""
    said = [Hidden.FAILS(case=name)] if verdict.outcome == FAIL else []
    return Verdict(verdict.outcome, verdict.id, said, verdict.kind)


def _item(case: HiddenCase, module: pytest.Module) -> pytest.Function:
    def hidden_case(check):
        check(*case.data, bound=case.bound, dtypes=case.dtypes, **case.constants)

    item = pytest.Function.from_parent(module, name=case.name, callobj=hidden_case)
    item.add_marker(pytest.mark.hidden)
    item.add_marker(pytest.mark.points(case.points))
    return item
