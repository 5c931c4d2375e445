"""Layer norm along the rows of a matrix: x [M, N], weight, bias [N], eps -> z [M, N], mean [M], rstd [M]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from grader.numerics.arguments import Argument, as_number, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis
from grader.sentences import Said, Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

Results = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
FEW = 16  # roundings: twice what right kernels of all kinds need
LARGEST_HALF = 65504.0
USUAL_EPS = (1e-5, 1e-6, 1e-12)  # defaults of libraries

CAUSES = (
    "padding-counted", "over-block", "one-pass-variance", "not-centred", "eps-outside", "row-zero", "weight-by-row",
)  # fmt: skip
PLAIN_CAUSES = (
    "unbiased", "eps-not-used", "no-root", "variance-for-rstd", "results-exchanged", "no-weight", "no-bias",
    "bias-weighted", "weight-for-bias", "equal-numbers",
    "divided-by-rstd", "one-weight",
)  # fmt: skip


class LayerNorm(Sentence):
    """Sentences about mistakes in a row's statistics, in what is made from them, and where few of their digits are
    left."""

    PADDED_LANE_COUNTED = (
        "The lane past the end of each row takes part in the variance: after the subtraction a padded lane holds "
        "0 - mean, no longer 0."
    )
    PADDED_LANES_COUNTED = (
        "The {lanes} lanes past the end of each row take part in the variance: after the subtraction a padded lane "
        "holds 0 - mean, no longer 0."
    )
    SUM_OVER_BLOCK = "The sum of a row is divided by {block}, the lanes of the block: a row has {N:#number}."
    SQUARES_OVER_BLOCK = "The sum of squares is divided by {block}, the lanes of the block: a row has {N:#number}."

    UNBIASED = "The sum of squares is divided by N - 1; layer norm divides it by N."
    EPS_LEFT_OUT = (
        "eps is not added to the variance: it has to be in every row, or a row of equal numbers is divided by 0."
    )
    ANOTHER_EPS = "eps is not used: the result is that of eps = {used:g}, and this call gives {eps:g}."
    EPS_OUTSIDE = "eps is added outside of the root: rstd is 1 / sqrt(variance + eps)."
    EPS_AS_LEAST = "eps stands in for smaller variances: it is added to each, and rstd is 1 / sqrt(variance + eps)."
    NO_ROOT = "The root is missing: x is divided by the variance, not by its root."
    SQUARES_NOT_CENTRED = "The squares are those of x itself: subtract the mean first, then square."
    VARIANCE_FOR_RSTD = "rstd holds the variance: it has to be 1 / sqrt(variance + eps)."
    VARIANCE_AND_EPS_FOR_RSTD = "rstd holds the variance, with eps: it has to be 1 / sqrt(variance + eps)."
    DEVIATION_FOR_RSTD = "rstd holds the standard deviation: it has to be 1 / sqrt(variance + eps)."
    STATISTICS_EXCHANGED = "mean and rstd are exchanged."

    NOT_CENTRED = "The mean is not subtracted from x."
    DIVIDED_BY_RSTD = "x - mean is divided by rstd: rstd is 1 / root, and x - mean is multiplied by it."
    NO_BIAS = "The bias is not added."
    NO_WEIGHT = "The weight is not used."
    NEITHER_USED = "Neither weight nor bias is used."
    BIAS_WEIGHTED = "The bias is multiplied by the weight: it comes last."
    WEIGHT_FOR_BIAS = "weight and bias are exchanged."

    BOTH_BY_ROW = "weight and bias are taken by the row's number: each column has its own, the same in all rows."
    WEIGHT_BY_ROW = "weight is taken by the row's number: each column has its own, the same in all rows."
    BIAS_BY_ROW = "bias is taken by the row's number: each column has its own, the same in all rows."
    ONE_FOR_ALL = "Every column gets the {name} of column 0: a pointer without a block loads one number."
    ROW_ZERO = "Every row is made from row 0 of {x}."

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


class Given(NamedTuple):
    """The arguments of a call."""

    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    eps: float


def given_in(inputs: Sequence[Argument]) -> Given:
    x, weight, bias = as_tensors(inputs[:3])
    (eps,) = inputs[3:]
    return Given(x, weight, bias, as_number(eps))


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
    x = given.x
    if not x.shape[1]:  # no numbers have a mean, and nothing is made of it
        return
    mean = x.mean(dim=1, keepdim=True)
    var = (x - mean).square().mean(dim=1, keepdim=True)
    yield from _in_padding(given, mean, var)
    yield from _in_statistics(given, mean, var)
    yield from _in_result(given, mean, var)
    yield from _of_other_values(evidence, given, mean, var)
    yield from _in_few_digits(evidence, given, mean, var)


def _results(given: Given, mean: torch.Tensor, rstd: torch.Tensor) -> Results:
    """Returns z, [M, N], mean and rstd, [M], of a kernel with these statistics, [M, 1]."""
    x, weight, bias, _ = given
    return (x - mean) * rstd * weight + bias, mean[:, 0], rstd[:, 0]


def _in_padding(given: Given, mean: torch.Tensor, var: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields lanes past the end of a row that count, in a block whose size is the next power of two."""
    x, _, _, eps = given
    N = x.shape[1]
    block = 1 << (N - 1).bit_length()
    padding = block - N
    if not padding:
        return
    said = LayerNorm.PADDED_LANE_COUNTED() if padding == 1 else LayerNorm.PADDED_LANES_COUNTED(lanes=padding)
    counted = var + padding / N * mean.square()
    found = _results(given, mean, (counted + eps).rsqrt())
    yield Hypothesis("padding-counted", said, found, by_subtraction=True)
    low = mean * (N / block)
    said = LayerNorm.SUM_OVER_BLOCK(block=block, N=N)
    around_low = (x - low).square().sum(dim=1, keepdim=True)
    for divisor in (N, block):
        for squares in (around_low, around_low + padding * low.square()):
            yield Hypothesis("over-block", said, _results(given, low, (squares / divisor + eps).rsqrt()))
    said = LayerNorm.SQUARES_OVER_BLOCK(block=block, N=N)
    for squares in (var * N, counted * N):
        yield Hypothesis("over-block", said, _results(given, mean, (squares / block + eps).rsqrt()))


def _in_statistics(given: Given, mean: torch.Tensor, var: torch.Tensor) -> Iterator[Hypothesis]:
    x, _, _, eps = given
    N, rstd = x.shape[1], (var + eps).rsqrt()
    right = _results(given, mean, rstd)

    def with_rstd(id: str, said: Said, rstd: torch.Tensor) -> Hypothesis:
        return Hypothesis(id, said, _results(given, mean, rstd))

    if N > 1:
        yield with_rstd("unbiased", LayerNorm.UNBIASED(), (var * N / (N - 1) + eps).rsqrt())
    yield with_rstd("eps-not-used", LayerNorm.EPS_LEFT_OUT(), var.rsqrt())
    for used in USUAL_EPS:
        yield with_rstd("eps-not-used", LayerNorm.ANOTHER_EPS(used=used, eps=eps), (var + used).rsqrt())
    for outside in (1 / (var.sqrt() + eps), var.rsqrt() + eps):
        yield with_rstd("eps-outside", LayerNorm.EPS_OUTSIDE(), outside)
    if bool((var < eps).any()):
        yield with_rstd("eps-outside", LayerNorm.EPS_AS_LEAST(), var.clamp(min=eps).rsqrt())
    yield with_rstd("no-root", LayerNorm.NO_ROOT(), 1 / (var + eps))
    around_zero = (x.square().mean(dim=1, keepdim=True) + eps).rsqrt()
    yield with_rstd("not-centred", LayerNorm.SQUARES_NOT_CENTRED(), around_zero)
    for held, sentence in (
        (var, LayerNorm.VARIANCE_FOR_RSTD), (var + eps, LayerNorm.VARIANCE_AND_EPS_FOR_RSTD),
        (var.sqrt(), LayerNorm.DEVIATION_FOR_RSTD), ((var + eps).sqrt(), LayerNorm.DEVIATION_FOR_RSTD),
    ):  # fmt: skip
        yield Hypothesis("variance-for-rstd", sentence(), (*right[:2], held[:, 0]))
    yield Hypothesis("results-exchanged", LayerNorm.STATISTICS_EXCHANGED(), (right[0], rstd[:, 0], mean[:, 0]))


def _in_result(given: Given, mean: torch.Tensor, var: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields z made in another way from the right statistics."""
    x, weight, bias, eps = given
    rstd = (var + eps).rsqrt()
    normed = (x - mean) * rstd
    right = _results(given, mean, rstd)

    def with_z(id: str, said: Said, z: torch.Tensor) -> Hypothesis:
        return Hypothesis(id, said, (z, *right[1:]))

    yield with_z("not-centred", LayerNorm.NOT_CENTRED(), x * rstd * weight + bias)
    yield with_z("divided-by-rstd", LayerNorm.DIVIDED_BY_RSTD(), (x - mean) / rstd * weight + bias)
    yield with_z("no-bias", LayerNorm.NO_BIAS(), normed * weight)
    yield with_z("no-weight", LayerNorm.NO_WEIGHT(), normed + bias)
    yield with_z("no-weight", LayerNorm.NEITHER_USED(), normed)
    yield with_z("bias-weighted", LayerNorm.BIAS_WEIGHTED(), (normed + bias) * weight)
    yield with_z("weight-for-bias", LayerNorm.WEIGHT_FOR_BIAS(), normed * bias + weight)


def _of_other_values(evidence: Compared, given: Given, mean: torch.Tensor, var: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields rows and parameters taken from the wrong place."""
    x, weight, bias, eps = given
    (M, N), rstd = x.shape, (var + eps).rsqrt()
    right = _results(given, mean, rstd)
    if 1 < M <= N:
        by_row, bias_by_row = weight[:M, None], bias[:M, None]
        normed = (x - mean) * rstd
        for z, sentence in (
            (normed * by_row + bias_by_row, LayerNorm.BOTH_BY_ROW),
            (normed * by_row + bias, LayerNorm.WEIGHT_BY_ROW),
            (normed * weight + bias_by_row, LayerNorm.BIAS_BY_ROW),
        ):
            yield Hypothesis("weight-by-row", sentence(), (z, *right[1:]))
    normed, names = (x - mean) * rstd, evidence.exercise.arguments
    for name, z in ((names[1], normed * weight[:1] + bias), (names[2], normed * weight + bias[:1])):
        yield Hypothesis("one-weight", LayerNorm.ONE_FOR_ALL(name=name), (z, *right[1:]))
    if M > 1:
        first = given._replace(x=x[:1].expand_as(x))
        said = LayerNorm.ROW_ZERO(x=evidence.exercise.arguments[0])
        yield Hypothesis("row-zero", said, _results(first, mean[:1].expand_as(mean), rstd[:1].expand_as(rstd)))


def _in_few_digits(evidence: Compared, given: Given, mean: torch.Tensor, var: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields mistakes whose results are what rounding leaves, known by where they show and by how much."""
    (x, _, _, eps), out, wrong = given, evidence.comparison.out, evidence.comparison.wrong
    rows = wrong.any(dim=1) if wrong.dim() > 1 else wrong
    past = torch.maximum(x.sum(dim=1).abs(), (x - mean).square().amax(dim=1)) > LARGEST_HALF
    if evidence.trial.dtype == torch.float16 and bool(past[rows].all()) and not bool(out.isfinite().all()):
        yield Hypothesis("low-precision", LayerNorm.FP16_OVERFLOW(), None)
    rstd = evidence.reply.outputs[evidence.exercise.results[2].name].double()[:, None]
    if not bool(var[rows].any()) and not bool(((rstd * eps**0.5 - 1).abs() < 1e-3)[rows].any()):
        yield Hypothesis("equal-numbers", LayerNorm.EQUAL_NUMBERS(rstd=eps**-0.5), None)
        return
    far, squares = mean.square() > 64 * var, mean.square() + var
    lost = (rstd.square().reciprocal() - eps - var).abs() / (U32 * squares)
    lost = lost.nan_to_num(nan=1.0)[rows]  # NaN: a variance below 0
    if bool(far[rows].all()) and bool((lost < 32).all()) and float(lost.max()) > 1 / 16:
        said = LayerNorm.ONE_PASS_VARIANCE()
        yield Hypothesis("one-pass-variance", said, _results(given, mean, rstd), may_be_constant=True)
