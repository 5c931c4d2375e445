"""Layer norm along the rows of a matrix: x [M, N], weight, bias [N], eps -> z [M, N], mean [M], rstd [M]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from grader.numerics.arguments import Argument, as_number, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import column_vectors, exchanged, first_of_all, lanes, row_statistics
from grader.operations.mistakes.half_precision import LARGEST_IN_FP16
from grader.operations.mistakes.lanes import next_power_of_2
from grader.operations.mistakes.row_statistics import RowStatistics, Statistic, over_block
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

Results = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
FEW = 16  # roundings: twice what right kernels of all kinds need
AFTER_SUBTRACTION = ": after the subtraction a padded lane holds 0 - mean, no longer 0."

CAUSES = ("one-pass-variance", "not-centred")
PLAIN_CAUSES = ("variance-for-rstd", "bias-weighted", "weight-for-bias", "equal-numbers", "divided-by-rstd")
DIGITS = ("one-pass-variance",)


class LayerNorm(Sentence):
    """Sentences about mistakes in a row's statistics, in what is made from them, and where few of their digits are
    left."""

    SQUARES_NOT_CENTRED = "The squares are those of x itself: subtract the mean first, then square."
    VARIANCE_FOR_RSTD = "rstd holds the variance: it has to be 1 / sqrt(variance + eps)."
    VARIANCE_AND_EPS_FOR_RSTD = "rstd holds the variance, with eps: it has to be 1 / sqrt(variance + eps)."
    DEVIATION_FOR_RSTD = "rstd holds the standard deviation: it has to be 1 / sqrt(variance + eps)."

    NOT_CENTRED = "The mean is not subtracted from x."
    DIVIDED_BY_RSTD = "x - mean is divided by rstd: rstd is 1 / root, and x - mean is multiplied by it."
    BIAS_WEIGHTED = "The bias is multiplied by the weight: it comes last."
    WEIGHT_FOR_BIAS = "weight and bias are exchanged."

    FP16_OVERFLOW = "Sums or squares pass 65504, the largest number of fp16: convert x to fp32 before computing."
    ONE_PASS_VARIANCE = (
        "The variance has lost its digits: mean(x * x) - mean * mean is a small difference of large numbers. "
        "Subtract the mean first, then square."
    )
    EQUAL_NUMBERS = (
        "Each row that is wrong holds one number, however often it stands there: the variance is 0, and so rstd is "
        "1 / sqrt(eps), here {rstd:.6g}."
    )
    LOST_DIGITS = (
        "Compute in fp32 from the load to the store, and take the mean from x before anything is squared: differences "
        "are small numbers, which have all their digits."
    )


LOST_DIGITS = LayerNorm.LOST_DIGITS()


class LayerNormArguments(NamedTuple):
    """The arguments of a call."""

    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    eps: float


def given_in(inputs: Sequence[Argument]) -> LayerNormArguments:
    x, weight, bias = as_tensors(inputs[:3])
    (eps,) = inputs[3:]
    return LayerNormArguments(x, weight, bias, as_number(eps))


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of z, [M, N]: the mean errs by few u of mean|x|, and its error is divided by the spread; then each
    product rounds."""
    x, weight, bias, eps = given_in(inputs)
    sizes = (_condition(x, eps)[:, None] + 1) * weight.abs() + bias.abs()
    scaled = (ref - bias).abs_()  # |weight| |x - mean| rstd
    return sizes.add_(scaled.mul_(1 + _first_number(x, eps)[:, None])).mul_(FEW * U32)


def rounding_of_mean(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of the mean, [M]: blocked sums err by few u of their terms' size, and terms may be distances to a
    row's first number."""
    x = given_in(inputs).x
    return (x.abs().mean(dim=1) + _first_distance(x)).mul_(FEW * U32)


def rounding_of_rstd(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of rstd, [M]: the relative error that rounding may give the root of the variance, times rstd."""
    x, _, _, eps = given_in(inputs)
    return (_condition(x, eps) + _first_number(x, eps) + 1).mul_(FEW * U32).mul_(ref)


def _condition(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns mean|x| in units of the spread, [M], by which a relative error of the mean is multiplied.

    T. Chan, G. Golub, R. LeVeque, Algorithms for Computing the Sample Variance, The American Statistician 37 (1983): a
    variance errs by less than that factor times u, also where it is gathered in a single walk, mean by mean.
    """
    return x.abs().mean(dim=1) * _rstd(x, eps)


def _first_number(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns what is added to the error of rstd, [M], in FEW u, where distances to a row's first number are summed.

    Right kernels do that. In the same paper, if that number lies k spreads away from the mean, the variance errs 1 +
    k^2 times as much as with distances to the mean; k reaches 4 in one of many rows. The root halves the error.
    """
    return (_first_distance(x) * _rstd(x, eps)).square_().div_(2)


def _first_distance(x: torch.Tensor) -> torch.Tensor:
    """Returns how far the first number of each row lies from the row's mean, [M]; 0 where a row is empty."""
    return (x[:, :1] - x.mean(dim=1, keepdim=True)).abs_().sum(dim=1)


def _rstd(x: torch.Tensor, eps: float) -> torch.Tensor:
    if not x.numel():
        return x.new_ones(len(x))  # torch warns of a variance of nothing, and pytest shows it to the learner
    return (x.var(dim=1, correction=0) + eps).rsqrt()


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    given = given_in(inputs)
    x, eps = given.x, given.eps
    if not x.shape[1]:  # no numbers have a mean, and nothing is made of it
        return
    mean = x.mean(dim=1, keepdim=True)
    var = (x - mean).square().mean(dim=1, keepdim=True)
    right = _results(given, mean, (var + eps).rsqrt())
    yield from _in_padding(given, mean, var)
    of_rows = Statistic("variance", "equal numbers", var, x.shape[1], eps, lambda rstd: _results(given, mean, rstd))
    yield from row_statistics.mistakes(of_rows)
    yield from _in_statistics(given, mean, var, right)
    yield from exchanged.mistakes(right, [one.name for one in evidence.exercise.results])
    yield from _in_result(given, mean, right)
    yield from column_vectors.mistakes(evidence, inputs, weight=1, bias=2)
    yield from first_of_all.mistakes(evidence, inputs, "row-zero")
    yield from _in_few_digits(evidence, given, mean, var)


def _results(given: LayerNormArguments, mean: torch.Tensor, rstd: torch.Tensor) -> Results:
    """Returns z, [M, N], mean and rstd, [M], of a kernel with these statistics, [M, 1]."""
    x, weight, bias, _ = given
    return (x - mean) * rstd * weight + bias, mean[:, 0], rstd[:, 0]


def _in_padding(given: LayerNormArguments, mean: torch.Tensor, var: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields lanes past the end of a row that count."""
    x, _, _, eps = given
    N, block = x.shape[1], next_power_of_2(x.shape[1])
    padding = block - N
    if not padding:
        return
    said = lanes.counted(padding, sum="variance", rest=AFTER_SUBTRACTION)
    counted = var + padding / N * mean.square()
    found = _results(given, mean, (counted + eps).rsqrt())
    yield Hypothesis("padding-counted", said, found, by_subtraction=True)
    low, said = mean * (N / block), over_block("a row", N)
    around_low = (x - low).square().sum(dim=1, keepdim=True)
    for divisor in (N, block):
        for squares in (around_low, around_low + padding * low.square()):
            found = _results(given, low, (squares / divisor + eps).rsqrt())
            yield Hypothesis("over-block", said, found)
    said, found = over_block("squares", N), _results(given, mean, (counted * (N / block) + eps).rsqrt())
    yield Hypothesis("over-block", said, found)


def _in_statistics(
    given: LayerNormArguments, mean: torch.Tensor, var: torch.Tensor, right: Results
) -> Iterator[Hypothesis]:
    x, _, _, eps = given
    around_zero = (x.square().mean(dim=1, keepdim=True) + eps).rsqrt()
    yield Hypothesis("not-centred", LayerNorm.SQUARES_NOT_CENTRED(), _results(given, mean, around_zero))
    for held, sentence in (
        (var, LayerNorm.VARIANCE_FOR_RSTD), (var + eps, LayerNorm.VARIANCE_AND_EPS_FOR_RSTD),
        (var.sqrt(), LayerNorm.DEVIATION_FOR_RSTD), ((var + eps).sqrt(), LayerNorm.DEVIATION_FOR_RSTD),
    ):  # fmt: skip
        yield Hypothesis("variance-for-rstd", sentence(), (*right[:2], held[:, 0]))


def _in_result(given: LayerNormArguments, mean: torch.Tensor, right: Results) -> Iterator[Hypothesis]:
    """Yields z made in another way from the right statistics."""
    (x, weight, bias, _), rstd = given, right[2][:, None]
    normed = (x - mean) * rstd
    for id, said, z in (
        ("not-centred", LayerNorm.NOT_CENTRED(), x * rstd * weight + bias),
        ("divided-by-rstd", LayerNorm.DIVIDED_BY_RSTD(), (x - mean) / rstd * weight + bias),
        ("bias-weighted", LayerNorm.BIAS_WEIGHTED(), (normed + bias) * weight),
        ("weight-for-bias", LayerNorm.WEIGHT_FOR_BIAS(), normed * bias + weight),
    ):
        yield Hypothesis(id, said, (z, *right[1:]))


def _in_few_digits(
    evidence: Compared, given: LayerNormArguments, mean: torch.Tensor, var: torch.Tensor
) -> Iterator[Hypothesis]:
    """Yields mistakes whose results are what rounding leaves, known by where they show and by how much."""
    (x, _, _, eps), out, wrong = given, evidence.comparison.out, evidence.comparison.wrong
    rows = wrong.any(dim=1) if wrong.dim() > 1 else wrong
    past = torch.maximum(x.sum(dim=1).abs(), (x - mean).square().amax(dim=1)) > LARGEST_IN_FP16
    if evidence.trial.dtype == torch.float16 and bool(past[rows].all()) and not bool(out.isfinite().all()):
        yield Hypothesis("low-precision", LayerNorm.FP16_OVERFLOW(), None)
    rstd = evidence.reply.outputs[evidence.exercise.results[2].name].double()[:, None]
    if not bool(var[rows].any()) and not bool(((rstd * eps**0.5 - 1).abs() < 1e-3)[rows].any()):
        if bool(((rstd * eps - 1).abs() < 1e-3)[rows].all()):  # x - mean is what rounding leaves, and so is z
            yield Hypothesis("eps-outside", RowStatistics.EPS_OUTSIDE(mean="variance"), None)
        yield Hypothesis("equal-numbers", LayerNorm.EQUAL_NUMBERS(rstd=eps**-0.5), None)
        return
    far, squares = mean.square() > 64 * var, mean.square() + var
    lost = (rstd.square().reciprocal() - eps - var).abs() / (U32 * squares)
    lost = lost.nan_to_num(nan=1.0)[rows]  # NaN: a variance below 0
    if bool(far[rows].all()) and bool((lost < 32).all()) and float(lost.max()) > 1 / 16:
        said = LayerNorm.ONE_PASS_VARIANCE()
        yield Hypothesis("one-pass-variance", said, _results(given, mean, rstd), may_be_constant=True)
