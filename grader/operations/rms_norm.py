"""RMS norm of a sum of two matrices, which one of them keeps: x, residual [M, N], weight [N], eps -> z, residual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence

CAUSES = (
    "norm-in-residual", "operand-forgotten", "old-statistic", "weight-forgotten", "mean-forgotten", "mean-over-block",
    "mean-subtracted", "root-forgotten", "eps-outside", "eps-forgotten", "rounded-sum", "rounded-before-weight",
    "squares-overflow",
)  # fmt: skip
PLAIN_CAUSES = ("weight-plus-one", "unbiased", "eps-ignored", "weight-by-row", "not-normalised")
LOST_DIGITS = "Sum, squares, root and products are to be in fp32: convert x and the residual before they are added."
USUAL_EPS = (1e-5, 1e-6, 1e-8)  # what a kernel may hold in place of its argument
LARGEST_FP16 = torch.finfo(torch.float16).max


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """16 u |z|: squares never cancel, so all errors are relative to z itself.

    The sum and two products err by 3 u, the mean of squares by at most 10 u, of which the root keeps half: 2 of the
    sum, 1 of the square, 4 of adding in blocks, 3 of the division and eps. Root and reciprocal are approximate on a
    GPU, 2 and 4 u (CUDA C++ Programming Guide, mathematical functions; PTX ISA, sqrt.approx and div.full).
    """
    return ref.abs().mul_(16 * U32)


def mistakes(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    x, residual, weight, eps = inputs
    z, kept = (one.name for one in evidence.exercise.results)
    h = residual + x
    if evidence.wanted.name == kept:
        yield from _of_what_is_kept(evidence, z, x, residual)
        return
    yield from _of_the_sum(evidence, inputs, h)
    yield from _of_the_statistic(evidence, inputs, h)
    yield from _of_eps(h, weight, eps)
    yield from _of_the_weight(evidence, inputs, h)
    yield from _of_rounding(evidence, inputs, h)


def rstd_of(h: torch.Tensor, eps: float) -> torch.Tensor:
    """1 / root of (mean of squares + eps), of each row; [M, 1]."""
    return 1 / torch.sqrt(h.square().mean(dim=1, keepdim=True) + eps)


def _of_what_is_kept(evidence: Evidence, z: str, x: torch.Tensor, residual: torch.Tensor) -> Iterator[Hypothesis]:
    """Of the argument that is updated. Its bound is exact, so what a norm rounds is compared with z as it came out."""
    name, normed = evidence.returns, evidence.reply.outputs.get(z)
    if normed is not None and torch.equal(evidence.comparison.out, normed):
        sentence = f"{name} holds the normalised rows, as {z} does: it has to hold the sum that was normalised."
        yield Hypothesis("norm-in-residual", sentence, None)


def _of_the_sum(evidence: Evidence, inputs: list[Argument], h: torch.Tensor) -> Iterator[Hypothesis]:
    """Another matrix is normalised, or scaled by the statistic of another one."""
    x, residual, weight, eps = inputs
    z, names = evidence.returns, evidence.exercise.arguments
    for used, one, left_out in ((names[0], x, names[1]), (names[1], residual, names[0])):
        sentence = f"{z} is made from {used} alone: {left_out} is not added."
        yield Hypothesis("operand-forgotten", sentence, one * rstd_of(one, eps) * weight)
    for used, one in ((names[1], residual), (names[0], x)):
        sentence = f"The mean square is that of {used} alone: the sum of {names[1]} and {names[0]} is normalised."
        yield Hypothesis("old-statistic", sentence, h * rstd_of(one, eps) * weight)


def _of_the_statistic(evidence: Evidence, inputs: list[Argument], h: torch.Tensor) -> Iterator[Hypothesis]:
    _, _, weight, eps = inputs
    total, N = h.square().sum(dim=1, keepdim=True), h.shape[1]
    block = 1 << (N - 1).bit_length()
    if block > N:
        sentence = (
            f"The mean square is taken over {block} lanes, and a row has {N} values: the sum of squares is divided by "
            "the block's size."
        )
        yield Hypothesis("mean-over-block", sentence, h / torch.sqrt(total / block + eps) * weight)
    if N > 1:
        sentence = "The sum of squares is not divided by the number of columns: the root is of their mean."
        yield Hypothesis("mean-forgotten", sentence, h / torch.sqrt(total + eps) * weight)
        sentence = "The sum of squares is divided by N - 1: a mean of squares divides by N."
        yield Hypothesis("unbiased", sentence, h / torch.sqrt(total / (N - 1) + eps) * weight)
    centred = h - h.mean(dim=1, keepdim=True)
    sentence = "The mean of the row is subtracted: that is layer norm. RMS norm divides by the root mean square alone."
    for numerator in (centred, h):
        yield Hypothesis("mean-subtracted", sentence, numerator * rstd_of(centred, eps) * weight)
    rms = torch.sqrt(total / N + eps)
    sentence = "The rows are divided by the mean square itself: its root is missing."
    yield Hypothesis("root-forgotten", sentence, h / rms.square() * weight)
    for result, what in ((h * weight, "neither multiplied by rstd nor divided"), (h * rms * weight, "multiplied")):
        sentence = f"The rows of {evidence.returns} are {what} by the root mean square: they are to be divided by it."
        yield Hypothesis("not-normalised", sentence, result)


def _of_eps(h: torch.Tensor, weight: torch.Tensor, eps: float) -> Iterator[Hypothesis]:
    mean = h.square().mean(dim=1, keepdim=True)
    sentence = "eps is added to the root: it belongs under it, beside the mean square."
    yield Hypothesis("eps-outside", sentence, h / (torch.sqrt(mean) + eps) * weight)
    sentence = "eps is not added: a row of zeros is 0 / 0, and small rows come out too large."
    yield Hypothesis("eps-forgotten", sentence, h / torch.sqrt(mean) * weight)
    for other in USUAL_EPS:
        if other != eps:
            sentence = f"eps is taken to be {other:g}, and this call gives {eps:g}: the argument is not used."
            yield Hypothesis("eps-ignored", sentence, h / torch.sqrt(mean + other) * weight)


def _of_the_weight(evidence: Evidence, inputs: list[Argument], h: torch.Tensor) -> Iterator[Hypothesis]:
    _, _, weight, eps = inputs
    name, (M, N), scaled = evidence.exercise.arguments[2], h.shape, h * rstd_of(h, eps)
    yield Hypothesis("weight-forgotten", f"{evidence.returns} is not multiplied by {name}.", scaled)
    sentence = f"{evidence.returns} is multiplied by 1 + {name}: here {name} is the whole factor."
    yield Hypothesis("weight-plus-one", sentence, scaled * (1 + weight))
    if 1 < M <= N:
        sentence = f"Row m is multiplied by {name}[m]: column n has the factor {name}[n], in every row."
        yield Hypothesis("weight-by-row", sentence, scaled * weight[:M, None])


def _of_rounding(evidence: Evidence, inputs: list[Argument], h: torch.Tensor) -> Iterator[Hypothesis]:
    """What 16 bits lose on the way. In fp32 none of this shows."""
    _, _, weight, eps = inputs
    dtype, z, names = evidence.wanted.dtype, evidence.returns, evidence.exercise.arguments
    if dtype.itemsize != 2:
        return
    if dtype == torch.float16:
        lost = (evidence.comparison.out == 0).all(dim=1) & (h != 0).any(dim=1)
        if bool((lost & (h.square().sum(dim=1) > LARGEST_FP16)).any()):
            sentence = (
                f"Rows of {z} are 0 because their squares, or the sum of these, pass 65504, the largest number of "
                "fp16: 1 / inf is 0. Convert to fp32 before squaring."
            )
            yield Hypothesis("squares-overflow", sentence, None)
    rounded = h.to(dtype).double()
    sentence = (
        f"{z} is made from the sum after its rounding: {names[1]} keeps the rounded sum, {z} is made from the sum in "
        "fp32."
    )
    yield Hypothesis("rounded-sum", sentence, rounded * rstd_of(rounded, eps) * weight)
    sentence = f"{z} is rounded before {names[2]} multiplies it, and once more after that: round at the end alone."
    yield Hypothesis("rounded-before-weight", sentence, (h * rstd_of(h, eps)).to(dtype).double() * weight)
