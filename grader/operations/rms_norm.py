"""RMS norm of a sum of two matrices, which one of them keeps: x, residual [M, N], weight [N], eps -> z, residual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from grader.numerics.arguments import Argument, as_number, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import column_vectors, operands, row_statistics
from grader.operations.mistakes.half_precision import LARGEST_IN_FP16, rounded
from grader.operations.mistakes.row_statistics import Statistic
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = (
    "norm-in-residual", "old-statistic", "mean-forgotten", "mean-subtracted", "rounded-sum", "rounded-before-weight",
    "squares-overflow",
)  # fmt: skip
PLAIN_CAUSES = ("weight-plus-one", "not-normalised")
DIGITS = ("rounded-sum", "rounded-before-weight", "squares-overflow")
TELLING = 8  # elements that are off by one factor


class RmsNorm(Sentence):
    """Sentences about what a norm is made from instead of the sum and its root mean square."""

    NORM_IN_RESIDUAL = "{residual} holds the normalised rows, as {z} does: it has to hold the sum that was normalised."

    OLD_STATISTIC = "The mean square is that of {used} alone: the sum of {residual} and {x} is normalised."

    MEAN_FORGOTTEN = "The sum of squares is not divided by the number of columns: the root is of their mean."
    MEAN_SUBTRACTED = (
        "The mean of the row is subtracted: that is layer norm. RMS norm divides by the root mean square alone."
    )
    NOT_NORMALISED = (
        "The rows of {z} are neither multiplied by rstd nor divided by the root mean square: they are to be divided "
        "by it."
    )
    MULTIPLIED_BY_RMS = "The rows of {z} are multiplied by the root mean square: they are to be divided by it."

    EPS_CHANGED = "{z} is what eps = {used:.3g} gives, and this call gives {eps:.3g}: eps has to be taken as it is."

    WEIGHT_PLUS_ONE = "{z} is multiplied by 1 + {weight}: here {weight} is the whole factor."

    SQUARES_OVERFLOW = (
        "Rows of {z} are 0 because their squares, or the sum of these, pass 65504, the largest number of fp16: 1 / inf "
        "is 0. Convert to fp32 before squaring."
    )
    ROUNDED_SUM = (
        "{z} is made from the sum after it was rounded to {dtype}{at_line}: add in fp32, and let only the store to "
        "{residual} round."
    )
    ROUNDED_BEFORE_WEIGHT = (
        "{z} is rounded before {weight} multiplies it, and once more after that: round at the end alone."
    )
    LOST_DIGITS = "Sum, squares, root and products are to be in fp32: convert x and the residual before they are added."


LOST_DIGITS = RmsNorm.LOST_DIGITS()


class RmsNormArguments(NamedTuple):
    """The arguments of a call."""

    x: torch.Tensor
    residual: torch.Tensor
    weight: torch.Tensor
    eps: float


def given_in(inputs: Sequence[Argument]) -> RmsNormArguments:
    x, residual, weight = as_tensors(inputs[:3])
    (eps,) = inputs[3:]
    return RmsNormArguments(x, residual, weight, as_number(eps))


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S = 16 u |z|, [M, N]: squares never cancel, so all errors are relative to z itself.

    The sum and two products err by 3 u, the mean of squares by at most 10 u, of which the root keeps half: 2 of the
    sum, 1 of the square, 4 of adding in blocks, 3 of the division and eps. Root and reciprocal are approximate on a
    GPU, 2 and 4 u (CUDA C++ Programming Guide, mathematical functions; PTX ISA, sqrt.approx and div.full).
    """
    return ref.abs().mul_(16 * U32)


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    x, residual, weight, eps = given = given_in(inputs)
    z, kept = (one.name for one in evidence.exercise.results)
    h = residual + x
    if evidence.wanted.name == kept:
        yield from _of_what_is_kept(evidence, z, x, residual)
        return
    mean = h.square().mean(dim=1, keepdim=True)
    yield from operands.without_summand(evidence, inputs, 0, 1)
    yield from _of_the_sum(evidence, given, h)
    yield from row_statistics.mistakes(
        Statistic("mean square", "zeros", mean, h.shape[1], eps, lambda rstd: h * rstd * weight)
    )
    yield from _of_the_statistic(evidence, given, h)
    yield from _of_another_eps(evidence, h, weight, eps)
    yield from column_vectors.mistakes(evidence, inputs, weight=2)
    said = RmsNorm.WEIGHT_PLUS_ONE(z=z, weight=evidence.exercise.arguments[2])
    yield Hypothesis("weight-plus-one", said, h * rstd_of(h, eps) * (1 + weight))
    yield from _of_rounding(evidence, given, h)


def rstd_of(h: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns 1 / sqrt(mean of squares + eps) of each row, [M, 1]."""
    return 1 / torch.sqrt(h.square().mean(dim=1, keepdim=True) + eps)


def _of_what_is_kept(evidence: Compared, z: str, x: torch.Tensor, residual: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields z in the argument that is updated. Its bound is exact, so it is compared with z as the kernel stored it,
    rounded."""
    name, normed = evidence.returns, evidence.reply.outputs.get(z)
    if normed is not None and torch.equal(evidence.comparison.out, normed):
        yield Hypothesis("norm-in-residual", RmsNorm.NORM_IN_RESIDUAL(residual=name, z=z), None)


def _of_the_sum(evidence: Compared, given: RmsNormArguments, h: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields the norm of the sum with the statistic of one of its two matrices."""
    x, residual, weight, eps = given
    x_name, residual_name = evidence.exercise.arguments[:2]
    for used, one in ((residual_name, residual), (x_name, x)):
        said = RmsNorm.OLD_STATISTIC(used=used, residual=residual_name, x=x_name)
        yield Hypothesis("old-statistic", said, h * rstd_of(one, eps) * weight)


def _of_the_statistic(evidence: Compared, given: RmsNormArguments, h: torch.Tensor) -> Iterator[Hypothesis]:
    _, _, weight, eps = given
    total, N = h.square().sum(dim=1, keepdim=True), h.shape[1]
    if N > 1:
        yield Hypothesis("mean-forgotten", RmsNorm.MEAN_FORGOTTEN(), h / torch.sqrt(total + eps) * weight)
    centred = h - h.mean(dim=1, keepdim=True)
    for numerator in (centred, h):
        yield Hypothesis("mean-subtracted", RmsNorm.MEAN_SUBTRACTED(), numerator * rstd_of(centred, eps) * weight)
    yield Hypothesis("not-normalised", RmsNorm.NOT_NORMALISED(z=evidence.returns), h * weight)
    said = RmsNorm.MULTIPLIED_BY_RMS(z=evidence.returns)
    yield Hypothesis("not-normalised", said, h / rstd_of(h, eps) * weight)


def _of_another_eps(evidence: Compared, h: torch.Tensor, weight: torch.Tensor, eps: float) -> Iterator[Hypothesis]:
    """Yields an eps near the given eps, in rows where eps decides: all elements of a row are off by one factor."""
    out, mean = evidence.comparison.out.double(), h.square().mean(dim=1, keepdim=True)
    telling = evidence.comparison.wrong & (out != 0) & out.isfinite()
    if int(telling.sum()) < TELLING or not bool((mean < eps)[telling.any(dim=1)].all()):
        return
    used = float(((h * weight / out).square() - mean)[telling].median())
    if eps / 2 < used < 2 * eps:
        said = RmsNorm.EPS_CHANGED(z=evidence.returns, used=used, eps=eps)
        yield Hypothesis("eps-not-used", said, h / torch.sqrt(mean + used) * weight)


def _of_rounding(evidence: Compared, given: RmsNormArguments, h: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields what 16 bits lose on the way, if z has 16 bits; fp32 shows none of it."""
    _, _, weight, eps = given
    dtype, z, names = evidence.wanted.dtype, evidence.returns, evidence.exercise.arguments
    if dtype.itemsize != 2:
        return
    if dtype == torch.float16:
        lost = (evidence.comparison.out == 0).all(dim=1) & (h != 0).any(dim=1)
        if bool((lost & (h.square().sum(dim=1) > LARGEST_IN_FP16)).any()):
            yield Hypothesis("squares-overflow", RmsNorm.SQUARES_OVERFLOW(z=z), None)
    kept = rounded(h, dtype)
    short = "fp16" if dtype == torch.float16 else "bf16"
    line = evidence.line_that_rounds_a_sum(short)
    at_line = f" (line {line})" if line else ""
    said = RmsNorm.ROUNDED_SUM(z=z, residual=names[1], dtype=short, at_line=at_line)
    yield Hypothesis("rounded-sum", said, kept * rstd_of(kept, eps) * weight, line=line)
    said = RmsNorm.ROUNDED_BEFORE_WEIGHT(z=z, weight=names[2])
    yield Hypothesis("rounded-before-weight", said, rounded(h * rstd_of(h, eps), dtype) * weight)
