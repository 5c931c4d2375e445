"""Softmax along the rows of a matrix: x [M, N] -> z [M, N]."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.data_sets import Data
from grader.numerics.roundoff import U32, UNIT_ROUNDOFF
from grader.operations.bounds import tolerance
from grader.operations.hypothesis import Hypothesis
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.course.trial import Trial
    from grader.explain.evidence import Compared

LOG_OF_SMALLEST = math.log(2.0**-126)  # exp of less is below fp32's smallest normal number

CAUSES = (
    "padding-counted", "no-maximum", "inf-minus-inf", "underflow", "not-divided", "wrong-axis", "row-zero", "row-sums",
    "last-column", "small-probabilities",
)  # fmt: skip
PLAIN_CAUSES = ("empty-row", "exp2", "logarithm")


class Softmax(Sentence):
    """Sentences about softmax. `sums` is one number where the rows' sums agree in three digits, else the least and the
    greatest sum."""

    EMPTY_ROW = (
        "A row that holds nothing but -inf is 0 in {name}; it has to be NaN, as 0 / 0 is: is there a guard, or a large "
        "negative number instead of -inf?"
    )
    ONE_LANE_COUNTED = (
        "The rows of {name} sum to {sums} instead of 1: the lane past the end of each row takes part in the sum."
    )
    LANES_COUNTED = (
        "The rows of {name} sum to {sums} instead of 1: the {lanes} lanes past the end of each row take part in the "
        "sum."
    )
    OVERFLOWS = (
        "exp overflows: subtract the maximum of the row before exponentiating, so that the largest exponent is 0."
    )
    INF_MINUS_INF = "{name} is NaN in rows that hold -inf: somewhere (-inf) - (-inf) is computed, and that is NaN."
    UNDERFLOWS = (
        "exp underflows: every exponential of a row is 0, and 0 / 0 is NaN. Subtract the row's own maximum, that of "
        "its own lanes only."
    )
    DIGITS_LOST_BELOW_ZERO = (
        "Digits are lost where x lies below -87: exp of it is no normal number of fp32. Subtract the maximum in every "
        "row, also where it is far below 0."
    )
    POWERS_OF_2 = "{name} is made with powers of 2, not of e: exp2 needs its argument times log2(e)."
    NOT_DIVIDED = "The rows of {name} sum to {sums} instead of 1: the exponentials are not divided by their sum."
    DOWN_THE_COLUMNS = "{name} is a softmax down the columns: each row has to sum to 1."
    LOGARITHMS = "{name} holds the logarithms of the probabilities."
    ROW_ZERO = "Every row of {name} is made from row 0 of {argument}."
    LAST_COLUMN = "The last column is left out of the sum."
    WRONG_DIVISOR = "The rows of {name} sum to {low:.6g} ... {high:.6g} instead of 1: the divisor is wrong."
    WRONG_AS_FP16_ROUNDS = (
        "The rows of {name} sum to {low:.6g} ... {high:.6g} instead of 1: the divisor is wrong. By no more than fp16 "
        "rounds: is every sum kept in fp32, and every column in it?"
    )
    SMALL_ONES = "Small probabilities are wrong: all below {limit:.1g}. They have digits of their own."
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
    (x,), name, sums = as_tensors(inputs), evidence.returns, _row_sums(evidence)
    N = x.shape[1]
    greatest = x.amax(dim=1, keepdim=True)
    e = torch.exp(x - greatest)
    yield from empty_rows(evidence, x)
    padding = (1 << (N - 1).bit_length()) - N
    if padding:
        shifted = greatest.clamp(min=0.0)  # the padding takes part in the maximum too
        padded = torch.exp(x - shifted)
        total = padded.sum(dim=1, keepdim=True) + padding * torch.exp(-shifted)
        one, more = Softmax.ONE_LANE_COUNTED, Softmax.LANES_COUNTED
        sentence = one(name=name, sums=sums) if padding == 1 else more(name=name, sums=sums, lanes=padding)
        yield Hypothesis("padding-counted", sentence, padded / total)
    for shift in (torch.zeros_like(greatest), x[:, :1]):
        if not bool(shift.isfinite().all()):
            continue
        naive = torch.exp((x - shift).float())
        if not bool(naive.isfinite().all()):
            yield Hypothesis(
                "no-maximum",
                Softmax.OVERFLOWS(),
                (naive / naive.sum(dim=1, keepdim=True)).double(),
                may_be_constant=evidence.exercise.bound in evidence.right_before,
            )
    nan = evidence.comparison.out.isnan() & ~evidence.comparison.expected.isnan()
    nan_rows, with_inf = nan.any(dim=1), (x == -torch.inf).any(dim=1)
    if bool(nan_rows.any()) and bool(with_inf[nan_rows].all()) and evidence.exercise.bound in evidence.right_before:
        yield Hypothesis("inf-minus-inf", Softmax.INF_MINUS_INF(name=name), None)
    gone = torch.exp(greatest.float() - greatest.clamp(min=0.0).float()) == 0
    passed_before = evidence.exercise.bound in evidence.right_before
    if passed_before and bool(gone.any()) and torch.equal(evidence.comparison.out.isnan().all(dim=1), gone[:, 0]):
        yield Hypothesis("underflow", Softmax.UNDERFLOWS(), None)
    if passed_before:
        above_zero = torch.exp(x) * (x > LOG_OF_SMALLEST)  # what is below the normal numbers becomes 0
        without = torch.where(greatest > 0, evidence.comparison.ref, above_zero / above_zero.sum(dim=1, keepdim=True))
        yield Hypothesis("underflow", Softmax.DIGITS_LOST_BELOW_ZERO(), without)
    powers = torch.exp2(x - greatest)
    yield Hypothesis("exp2", Softmax.POWERS_OF_2(name=name), powers / powers.sum(dim=1, keepdim=True))
    yield Hypothesis("not-divided", Softmax.NOT_DIVIDED(name=name, sums=sums), e)
    yield Hypothesis("wrong-axis", Softmax.DOWN_THE_COLUMNS(name=name), torch.softmax(x, dim=0))
    yield Hypothesis("logarithm", Softmax.LOGARITHMS(name=name), torch.log_softmax(x, dim=1))
    if len(x) > 1:
        first_row = torch.softmax(x[:1].expand_as(x), dim=1)
        sentence = Softmax.ROW_ZERO(name=name, argument=evidence.exercise.arguments[0])
        yield Hypothesis("row-zero", sentence, first_row)
    if N > 1:
        short = torch.cat([e[:, :-1], torch.zeros_like(e[:, :1])], dim=1)
        for numerator in (e, short):
            yield Hypothesis("last-column", Softmax.LAST_COLUMN(), numerator / short.sum(dim=1, keepdim=True))
    yield from _small_ones_wrong(evidence)
    yield from _row_factor(evidence, [x])


def empty_rows(evidence: Compared, x: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields the mistake of a guard against rows of -inf alone, where these rows are 0 and nothing else is wrong.

    It has to come before the mistake of counting lanes past the end, which would make these rows 0 as well.
    """
    empty = ((x == -torch.inf) | x.isnan()).all(dim=1) & (evidence.comparison.out == 0).all(dim=1)
    if bool(empty.any()) and torch.equal(empty, evidence.comparison.wrong.any(dim=1)):
        yield Hypothesis("empty-row", Softmax.EMPTY_ROW(name=evidence.returns), None)


def _row_factor(evidence: Compared, inputs: Sequence[torch.Tensor]) -> Iterator[Hypothesis]:
    """Yields the mistake of a wrong divisor, where probabilities are right but for one factor per row."""
    out, ref = evidence.comparison.out.double(), evidence.comparison.ref
    if not bool(out.isfinite().all()):
        return
    sums = out.sum(dim=1, keepdim=True)
    allowed = 4 * tolerance("softmax", inputs, ref, evidence.wanted.dtype)
    if bool((sums == 0).any()) or not bool(((out / sums - ref).abs() <= allowed).all()):
        return
    low, high = float(sums.min()), float(sums.max())
    if f"{low:.6g}" == f"{high:.6g}" == "1":
        return
    near = max(abs(low - 1), abs(high - 1)) < 2 * UNIT_ROUNDOFF[torch.float16]
    wrong = Softmax.WRONG_AS_FP16_ROUNDS if near else Softmax.WRONG_DIVISOR
    yield Hypothesis("row-sums", wrong(name=evidence.returns, low=low, high=high), None)


def _small_ones_wrong(evidence: Compared) -> Iterator[Hypothesis]:
    """Yields the mistake of clamping exponents, or rounding them away: only the smallest probabilities are wrong."""
    wrong, size = evidence.comparison.wrong, evidence.comparison.ref
    if bool(wrong.all()) or not bool(evidence.comparison.out.isfinite().all()):
        return
    largest_wrong, smallest_right = float(size[wrong].max()), float(size[~wrong].min())
    if largest_wrong < smallest_right and largest_wrong < 1e-3:
        yield Hypothesis("small-probabilities", Softmax.SMALL_ONES(limit=smallest_right), None)


def _row_sums(evidence: Compared) -> str:
    """Returns the least and the greatest sum of a row as text: "0.5 ... 1.5", or "1.5" where they agree."""
    sums = evidence.comparison.out.double().sum(dim=1)
    low, high = float(sums.min()), float(sums.max())
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} ... {high:.3g}"
