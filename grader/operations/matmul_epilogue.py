"""A product with a bias for each column and leaky relu: a [M, K], b [K, N], bias [N] -> c [M, N].

c = s where s = a @ b + bias is above 0, and 0.01 s where it is not; the sums are kept in fp32.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations import gemm

SLOPE = 0.01


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
