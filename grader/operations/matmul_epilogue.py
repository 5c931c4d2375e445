"""A product with a bias for each column and leaky relu: a [M, K], b [K, N], bias [N] -> c [M, N].

c = s where s = a @ b + bias is above 0, and 0.01 s where it is not; the sums are kept in fp32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import leaky_relu

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations import gemm
from grader.operations.hypothesis import Hypothesis
from grader.operations.mistakes import column_vectors
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

SLOPE = 0.01
OTHER_SLOPES = (0.1, 0.001, 0.2, 0.02, 0.05)

CAUSES = ("act-before-bias", "bias-twice", "no-activation", "slope-swapped", "wrong-slope")


class MatmulEpilogue(Sentence):
    """Sentences about a wrong bias or a wrong activation."""

    BIAS_TWICE = "The bias is added twice: once for each tile is enough."
    NO_ACTIVATION = "{result} holds the sums as they are: those below 0 have to be multiplied by 0.01."
    ACT_BEFORE_BIAS = "The activation comes before the bias: sums that the bias takes across 0 have the wrong factor."
    SLOPE_SWAPPED = "The two sides are exchanged: what is above 0 is multiplied by 0.01, and what is below 0 stays."
    RELU = "{result} is 0 where the sum is below 0: relu has the slope 0 there, leaky relu 0.01."
    SLOPE_NEGATED = "{result} is wrong below 0 only, by its sign: there the factor is 0.01, not -0.01."
    WRONG_SLOPE = "Below 0 the slope is {slope}, and it has to be 0.01."
    LOST_DIGITS = (
        "The sum is fp32 when the bias arrives: bias, activation and sum stay in fp32, and only the store rounds to "
        "fp16."
    )


LOST_DIGITS = MatmulEpilogue.LOST_DIGITS()


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [M, N]: for the product what gemm allows, with the bias as one more term; then 2 u of the result for
    the rounded slope and its product.

    Below 0 the error of the sum is multiplied by the slope, but for sums so near to 0 that rounding decides on their
    side of it.
    """
    error = (gemm.growth(as_tensor(inputs[0]).shape[-1]) + 2) * U32 * terms(inputs, ref)
    is_below = ref < -SLOPE * error
    return torch.where(is_below, SLOPE * error, error) + 2 * U32 * ref.abs()


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the |terms| of each element, the bias among them, [M, N]."""
    a, b, bias = as_tensors(inputs)
    return a.abs() @ b.abs() + bias.abs()


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 3:
        return  # of one layer alone
    (a, b, bias), c = as_tensors(inputs), evidence.returns
    product = a @ b
    sum_ = product + bias
    yield from column_vectors.mistakes(evidence, inputs, bias=2)
    yield Hypothesis("bias-twice", MatmulEpilogue.BIAS_TWICE(), _leaky(sum_ + bias))
    yield Hypothesis("no-activation", MatmulEpilogue.NO_ACTIVATION(result=c), sum_)
    yield Hypothesis("act-before-bias", MatmulEpilogue.ACT_BEFORE_BIAS(), _leaky(product) + bias)
    yield Hypothesis("slope-swapped", MatmulEpilogue.SLOPE_SWAPPED(), torch.where(sum_ > 0, SLOPE * sum_, sum_))
    yield Hypothesis("wrong-slope", MatmulEpilogue.RELU(result=c), torch.relu(sum_))
    yield Hypothesis("wrong-slope", MatmulEpilogue.SLOPE_NEGATED(result=c), leaky_relu(sum_, -SLOPE))
    for slope in OTHER_SLOPES:
        yield Hypothesis("wrong-slope", MatmulEpilogue.WRONG_SLOPE(slope=slope), leaky_relu(sum_, slope))


def _leaky(sum_: torch.Tensor) -> torch.Tensor:
    return leaky_relu(sum_, SLOPE)
