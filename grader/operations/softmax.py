"""Softmax along the rows of a matrix: x [M, N] -> z [M, N]."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.data_sets import Data
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import exponentials, first_of_all, lanes
from grader.operations.mistakes.lanes import next_power_of_2
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.course.trial import Trial
    from grader.operations.evidence import Compared

LOG_OF_SMALLEST = math.log(2.0**-126)  # exp of less is below fp32's smallest normal number

CAUSES = ("wrong-axis", "small-probabilities")
PLAIN_CAUSES = ("empty-row",)
RANGE = ("small-probabilities",)


class Softmax(Sentence):
    """Sentences about rows of -inf alone, small numbers and the wrong axis."""

    EMPTY_ROW = (
        "A row that holds nothing but -inf is 0 in {name}; it has to be NaN, as 0 / 0 is: is there a guard, or a large "
        "negative number instead of -inf?"
    )
    DIGITS_LOST_BELOW_ZERO = (
        "Digits are lost where x lies below -87: exp of it is no normal number of fp32. Subtract the maximum in every "
        "row, also where it is far below 0."
    )
    DOWN_THE_COLUMNS = "{name} is a softmax down the columns: each row has to sum to 1."
    SMALL_ONES = "Small probabilities are wrong: all below {limit:.1g}. They have digits of their own."
    PADDING_IS_INFINITE = (
        "The load in line {line} gives +inf to lanes past the end, and that is the maximum then: -inf is below all "
        "other numbers."
    )
    LOST_DIGITS = (
        "The error of an exponent is the relative error of the result: subtract the row's maximum before anything else "
        "is done to x, as long as the numbers are exact."
    )


LOST_DIGITS = Softmax.LOST_DIGITS()


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S = (20 + 2 |x - max|) u |z|, [M, N]: exp of a rounded difference errs by |x - max| u; division, exp
    and the blocked sum add about 20 u."""
    (x,) = as_tensors(inputs)
    largest = x.amax(dim=-1, keepdim=True)
    factor = torch.sub((20 + 2 * largest) * U32, x, alpha=2 * U32)  # in one pass: timed results are checked with it too
    return factor.nan_to_num_(posinf=0.0).mul_(ref.abs())


def right_with_hollow_blocks(evidence: Compared, step: int) -> bool:
    """Returns whether a call has passed whose rows began with a block of `step` columns that held nothing but -inf."""
    steps = ("leading", -math.inf)
    return any(
        steps in data.steps and data.shape[-1] // 2 >= step for trial in evidence.right_trials for data in _drawn(trial)
    )


def right_far_below_zero(evidence: Compared, longer_than: int = 0) -> bool:
    """Returns whether a call has passed whose exponentials are all 0 unless a maximum is subtracted, and whose rows
    have more than `longer_than` columns."""
    return any(
        _moved_by(data) < 2 * LOG_OF_SMALLEST and data.shape[-1] > longer_than
        for trial in evidence.right_trials
        for data in _drawn(trial)
    )


def _drawn(trial: Trial) -> Iterator[Data]:
    return (data for data in trial.data if isinstance(data, Data))


def _moved_by(data: Data) -> float:
    """Returns the sum of the numbers that a data set adds to values that are drawn around 0."""
    return sum(number for name, *numbers in data.steps if name == "add" for number in numbers)


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 1:
        return  # several inputs: how x is made from them is not known here
    (x,), name = as_tensors(inputs), evidence.returns
    greatest = x.amax(dim=1, keepdim=True)
    yield from empty_rows(evidence, x)
    if padding := next_power_of_2(x.shape[1]) - x.shape[1]:
        if bool(evidence.comparison.out.isnan().all()) and (line := evidence.line_of_other(math.inf)):
            yield Hypothesis("padding-counted", Softmax.PADDING_IS_INFINITE(line=line), None, line=line)
        shifted = greatest.clamp(min=0.0)  # the padding takes part in the maximum too
        padded = torch.exp(x - shifted)
        total = padded.sum(dim=1, keepdim=True) + padding * torch.exp(-shifted)
        said = lanes.counted(padding, opening=f"{exponentials.sums_text(evidence)} the")
        yield Hypothesis("padding-counted", said, padded / total, held=0.0)
    yield from exponentials.without_maximum(evidence, x)
    yield from exponentials.not_a_number(evidence, x)
    if exponentials.passed_before(evidence):
        above_zero = torch.exp(x) * (x > LOG_OF_SMALLEST)  # what is below the normal numbers becomes 0
        without = torch.where(greatest > 0, evidence.comparison.ref, above_zero / above_zero.sum(dim=1, keepdim=True))
        yield Hypothesis("underflow", Softmax.DIGITS_LOST_BELOW_ZERO(), without)
    yield Hypothesis("wrong-axis", Softmax.DOWN_THE_COLUMNS(name=name), torch.softmax(x, dim=0))
    yield from exponentials.other_formulas(evidence, x)
    yield from first_of_all.mistakes(evidence, inputs, "row-zero")
    yield from _small_ones_wrong(evidence)
    yield from exponentials.wrong_divisor(evidence, [x])


def empty_rows(evidence: Compared, x: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields the mistake of a guard against rows of -inf alone, where these rows are 0 and nothing else is wrong.

    It has to come before the mistake of counting lanes past the end, which would make these rows 0 as well.
    """
    empty = ((x == -torch.inf) | x.isnan()).all(dim=1) & (evidence.comparison.out == 0).all(dim=1)
    if bool(empty.any()) and torch.equal(empty, evidence.comparison.wrong.any(dim=1)):
        yield Hypothesis("empty-row", Softmax.EMPTY_ROW(name=evidence.returns), None)


def _small_ones_wrong(evidence: Compared) -> Iterator[Hypothesis]:
    """Yields the mistake of clamping exponents, or rounding them away: only the smallest probabilities are wrong."""
    wrong, size = evidence.comparison.wrong, evidence.comparison.ref
    if bool(wrong.all()) or not bool(evidence.comparison.out.isfinite().all()):
        return
    largest_wrong, smallest_right = float(size[wrong].max()), float(size[~wrong].min())
    if largest_wrong < smallest_right and largest_wrong < 1e-3:
        yield Hypothesis("small-probabilities", Softmax.SMALL_ONES(limit=smallest_right), None)
