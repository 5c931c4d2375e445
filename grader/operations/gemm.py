"""A product of matrices, summed in fp32: a [M, K] @ b [K, N] -> c [M, N]."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32

LEFT_OUT = 2.0  # u of |terms|: see `rounding`


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [M, N]: the growth of the sum's error, and LEFT_OUT u for operands that are split into parts in
    tf32.

    A product of fp32 made of three of tf32 leaves out the product of the two rests, each at most 2**-11 of its number:
    at most 4 u of a term. A few terms may all be near this limit; in longer sums `growth` has room for it.
    """
    a, b = as_tensors(inputs)
    return (growth(a.shape[-1]) + LEFT_OUT) * U32 * (a.abs() @ b.abs())


def growth(K: int) -> float:
    """Returns the error of a sum of K products, in u of its |terms|: blocked fp32 sums grow like the square root of the
    steps; tensor cores truncate, which is the second term."""
    steps = K / 16
    return 4 * math.sqrt(steps + 4) + 2 * steps


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the |products| of each element, [M, N]."""
    a, b = as_tensors(inputs)
    return a.abs() @ b.abs()
