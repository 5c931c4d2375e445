"""RMS norm of a sum of two matrices, which one of them keeps: x, residual [M, N], weight [N], eps -> z, residual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from grader.numerics.arguments import Argument, as_number, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

CAUSES = (
    "norm-in-residual", "operand-forgotten", "old-statistic", "weight-forgotten", "mean-forgotten", "mean-over-block",
    "mean-subtracted", "root-forgotten", "eps-outside", "eps-forgotten", "rounded-sum", "rounded-before-weight",
    "squares-overflow",
)  # fmt: skip
PLAIN_CAUSES = ("weight-plus-one", "unbiased", "eps-ignored", "weight-by-row", "not-normalised")
USUAL_EPS = (1e-5, 1e-6, 1e-8)  # constants that a kernel may use instead of its argument
TELLING = 8  # elements that are off by one factor
LARGEST_FP16 = torch.finfo(torch.float16).max


class RmsNorm(Sentence):
    """Sentences about what a norm is made from instead of the sum and its root mean square."""

    NORM_IN_RESIDUAL = "{residual} holds the normalised rows, as {z} does: it has to hold the sum that was normalised."

    OPERAND_FORGOTTEN = "{z} is made from {used} alone: {left_out} is not added."
    OLD_STATISTIC = "The mean square is that of {used} alone: the sum of {residual} and {x} is normalised."

    MEAN_OVER_BLOCK = (
        "The mean square is taken over {block:#lane}, and a row has {N:#value}: the sum of squares is divided by the "
        "block's size."
    )
    MEAN_FORGOTTEN = "The sum of squares is not divided by the number of columns: the root is of their mean."
    UNBIASED = "The sum of squares is divided by N - 1: a mean of squares divides by N."
    MEAN_SUBTRACTED = (
        "The mean of the row is subtracted: that is layer norm. RMS norm divides by the root mean square alone."
    )
    ROOT_FORGOTTEN = "The rows are divided by the mean square itself: its root is missing."
    NOT_NORMALISED = (
        "The rows of {z} are neither multiplied by rstd nor divided by the root mean square: they are to be divided "
        "by it."
    )
    MULTIPLIED_BY_RMS = "The rows of {z} are multiplied by the root mean square: they are to be divided by it."

    EPS_OUTSIDE = "eps is added to the root: it belongs under it, with the mean square."
    EPS_AS_LEAST = "eps stands in for smaller mean squares: it is added to each of them, under the root."
    EPS_FORGOTTEN = "eps is not added: a row of zeros is 0 / 0, and small rows come out too large."
    EPS_IGNORED = "eps is taken to be {used:g}, and this call gives {eps:g}: the argument is not used."
    EPS_CHANGED = "{z} is what eps = {used:.3g} gives, and this call gives {eps:.3g}: eps has to be taken as it is."

    WEIGHT_FORGOTTEN = "{z} is not multiplied by {weight}."
    WEIGHT_PLUS_ONE = "{z} is multiplied by 1 + {weight}: here {weight} is the whole factor."
    WEIGHT_BY_ROW = "Row m is multiplied by {weight}[m]: column n has the factor {weight}[n], in every row."

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


class Given(NamedTuple):
    """The arguments of a call."""

    x: torch.Tensor
    residual: torch.Tensor
    weight: torch.Tensor
    eps: float


def given_in(inputs: Sequence[Argument]) -> Given:
    x, residual, weight = as_tensors(inputs[:3])
    (eps,) = inputs[3:]
    return Given(x, residual, weight, as_number(eps))


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
    yield from _of_the_sum(evidence, given, h)
    yield from _of_the_statistic(evidence, given, h)
    yield from _of_eps(h, weight, eps)
    yield from _of_another_eps(evidence, h, weight, eps)
    yield from _of_the_weight(evidence, given, h)
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


def _of_the_sum(evidence: Compared, given: Given, h: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields norms of another matrix than the sum, or of the sum with another matrix's statistic."""
    x, residual, weight, eps = given
    x_name, residual_name = evidence.exercise.arguments[:2]
    for used, one, left_out in ((x_name, x, residual_name), (residual_name, residual, x_name)):
        said = RmsNorm.OPERAND_FORGOTTEN(z=evidence.returns, used=used, left_out=left_out)
        yield Hypothesis("operand-forgotten", said, one * rstd_of(one, eps) * weight)
    for used, one in ((residual_name, residual), (x_name, x)):
        said = RmsNorm.OLD_STATISTIC(used=used, residual=residual_name, x=x_name)
        yield Hypothesis("old-statistic", said, h * rstd_of(one, eps) * weight)


def _of_the_statistic(evidence: Compared, given: Given, h: torch.Tensor) -> Iterator[Hypothesis]:
    _, _, weight, eps = given
    total, N = h.square().sum(dim=1, keepdim=True), h.shape[1]
    block = 1 << (N - 1).bit_length()
    if block > N:
        said = RmsNorm.MEAN_OVER_BLOCK(block=block, N=N)
        yield Hypothesis("mean-over-block", said, h / torch.sqrt(total / block + eps) * weight)
    if N > 1:
        yield Hypothesis("mean-forgotten", RmsNorm.MEAN_FORGOTTEN(), h / torch.sqrt(total + eps) * weight)
        yield Hypothesis("unbiased", RmsNorm.UNBIASED(), h / torch.sqrt(total / (N - 1) + eps) * weight)
    centred = h - h.mean(dim=1, keepdim=True)
    for numerator in (centred, h):
        yield Hypothesis("mean-subtracted", RmsNorm.MEAN_SUBTRACTED(), numerator * rstd_of(centred, eps) * weight)
    rms = torch.sqrt(total / N + eps)
    yield Hypothesis("root-forgotten", RmsNorm.ROOT_FORGOTTEN(), h / rms.square() * weight)
    yield Hypothesis("not-normalised", RmsNorm.NOT_NORMALISED(z=evidence.returns), h * weight)
    yield Hypothesis("not-normalised", RmsNorm.MULTIPLIED_BY_RMS(z=evidence.returns), h * rms * weight)


def _of_eps(h: torch.Tensor, weight: torch.Tensor, eps: float) -> Iterator[Hypothesis]:
    mean = h.square().mean(dim=1, keepdim=True)
    yield Hypothesis("eps-outside", RmsNorm.EPS_OUTSIDE(), h / (torch.sqrt(mean) + eps) * weight)
    if bool((mean < eps).any()):
        yield Hypothesis("eps-outside", RmsNorm.EPS_AS_LEAST(), h / torch.sqrt(mean.clamp(min=eps)) * weight)
    yield Hypothesis("eps-forgotten", RmsNorm.EPS_FORGOTTEN(), h / torch.sqrt(mean) * weight)
    for used in USUAL_EPS:
        if used != eps:
            said = RmsNorm.EPS_IGNORED(used=used, eps=eps)
            yield Hypothesis("eps-ignored", said, h / torch.sqrt(mean + used) * weight)


def _of_another_eps(evidence: Compared, h: torch.Tensor, weight: torch.Tensor, eps: float) -> Iterator[Hypothesis]:
    """Yields an eps near the given eps, in rows where eps decides: all elements of a row are off by one factor."""
    out, mean = evidence.comparison.out.double(), h.square().mean(dim=1, keepdim=True)
    telling = evidence.comparison.wrong & (out != 0) & out.isfinite()
    if int(telling.sum()) < TELLING or not bool((mean < eps)[telling.any(dim=1)].all()):
        return
    used = float(((h * weight / out).square() - mean)[telling].median())
    if eps / 2 < used < 2 * eps:
        said = RmsNorm.EPS_CHANGED(z=evidence.returns, used=used, eps=eps)
        yield Hypothesis("eps-ignored", said, h / torch.sqrt(mean + used) * weight)


def _of_the_weight(evidence: Compared, given: Given, h: torch.Tensor) -> Iterator[Hypothesis]:
    _, _, weight, eps = given
    z, name, (M, N) = evidence.returns, evidence.exercise.arguments[2], h.shape
    scaled = h * rstd_of(h, eps)
    yield Hypothesis("weight-forgotten", RmsNorm.WEIGHT_FORGOTTEN(z=z, weight=name), scaled)
    yield Hypothesis("weight-plus-one", RmsNorm.WEIGHT_PLUS_ONE(z=z, weight=name), scaled * (1 + weight))
    if 1 < M <= N:
        yield Hypothesis("weight-by-row", RmsNorm.WEIGHT_BY_ROW(weight=name), scaled * weight[:M, None])


def _of_rounding(evidence: Compared, given: Given, h: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields what 16 bits lose on the way, if z has 16 bits; fp32 shows none of it."""
    _, _, weight, eps = given
    dtype, z, names = evidence.wanted.dtype, evidence.returns, evidence.exercise.arguments
    if dtype.itemsize != 2:
        return
    if dtype == torch.float16:
        lost = (evidence.comparison.out == 0).all(dim=1) & (h != 0).any(dim=1)
        if bool((lost & (h.square().sum(dim=1) > LARGEST_FP16)).any()):
            yield Hypothesis("squares-overflow", RmsNorm.SQUARES_OVERFLOW(z=z), None)
    rounded = h.to(dtype).double()
    short = "fp16" if dtype == torch.float16 else "bf16"
    found = evidence.rounding(of_a_sum=True)
    line = found.line if found is not None and found.dtype == short else 0
    at_line = f" (line {line})" if line else ""
    said = RmsNorm.ROUNDED_SUM(z=z, residual=names[1], dtype=short, at_line=at_line)
    yield Hypothesis("rounded-sum", said, rounded * rstd_of(rounded, eps) * weight, line=line)
    said = RmsNorm.ROUNDED_BEFORE_WEIGHT(z=z, weight=names[2])
    yield Hypothesis("rounded-before-weight", said, (h * rstd_of(h, eps)).to(dtype).double() * weight)
