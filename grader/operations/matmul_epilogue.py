"""A product with a bias for each column and leaky relu: a [M, K], b [K, N], bias [N] -> c [M, N].

c = s where s = a @ b + bias is above 0, and 0.01 s where it is not; the sums are kept in fp32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import leaky_relu

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import U32
from grader.operations import gemm
from grader.operations.hypothesis import Hypothesis

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence

SLOPE = 0.01
OTHER_SLOPES = (0.1, 0.001, 0.2, 0.02, 0.05)

CAUSES = ("bias-by-row", "no-bias", "act-before-bias", "bias-twice", "no-activation", "slope-swapped", "wrong-slope")
LOST_DIGITS = (
    "The sum is fp32 when the bias arrives: bias, activation and sum stay in fp32, and only the store rounds to fp16."
)


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Of the product what gemm allows; the bias is one more term; then the slope, rounded, and its product: 2 u.

    Below 0 all of it is multiplied by the slope, but for sums so near to 0 that rounding decides on their side of it.
    """
    error = (gemm.growth(inputs[0].shape[-1]) + 2) * U32 * terms(inputs, ref)
    is_below = ref < -SLOPE * error
    return torch.where(is_below, SLOPE * error, error) + 2 * U32 * ref.abs()


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Of each sum that of its |terms|."""
    a, b, bias = inputs
    return a.abs() @ b.abs() + bias.abs()


def mistakes(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 3:
        return  # of one layer alone
    (a, b, bias), c = inputs, evidence.returns
    product = a @ b
    sum_ = product + bias
    yield Hypothesis("no-bias", f"{c} lacks the bias: it is the activation of the product alone.", _leaky(product))
    yield from _bias_along_rows(product, bias)
    yield Hypothesis("bias-twice", "The bias is added twice: once for each tile is enough.", _leaky(sum_ + bias))
    yield Hypothesis("no-activation", f"{c} holds the sums as they are: those below 0 have to be multiplied by 0.01.",
                     sum_)  # fmt: skip
    sentence = "The activation comes before the bias: sums that the bias takes across 0 have the wrong factor."
    yield Hypothesis("act-before-bias", sentence, _leaky(product) + bias)
    sentence = "The two sides are exchanged: what is above 0 is multiplied by 0.01, and what is below 0 stays."
    yield Hypothesis("slope-swapped", sentence, torch.where(sum_ > 0, SLOPE * sum_, sum_))
    yield Hypothesis("wrong-slope", f"{c} is 0 where the sum is below 0: relu has the slope 0 there, leaky relu 0.01.",
                     torch.relu(sum_))  # fmt: skip
    sentence = f"{c} is wrong below 0 only, by its sign: there the factor is 0.01, not -0.01."
    yield Hypothesis("wrong-slope", sentence, leaky_relu(sum_, -SLOPE))
    for slope in OTHER_SLOPES:
        yield Hypothesis("wrong-slope", f"Below 0 the slope is {slope}, and it has to be 0.01.",
                         leaky_relu(sum_, slope))  # fmt: skip


def _leaky(sum_: torch.Tensor) -> torch.Tensor:
    return leaky_relu(sum_, SLOPE)


def _bias_along_rows(product: torch.Tensor, bias: torch.Tensor) -> Iterator[Hypothesis]:
    """As far as the bias goes; further down lanes are masked, and add 0."""
    M, N = product.shape
    along = torch.zeros(M, dtype=bias.dtype)
    along[: min(M, N)] = bias[:M]
    sentence = "The bias is added by row: bias[n] belongs to column n of c."
    yield Hypothesis("bias-by-row", sentence, _leaky(product + along[:, None]))
