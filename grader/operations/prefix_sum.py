"""Sums so far along the rows of a matrix, kept in fp32: x [M, N] -> z [M, N], z[m, n] = x[m, 0] + ... + x[m, n]."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32

LEAST_BLOCK = 64  # the fewest columns that a right kernel takes at a time


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [M, N]: a sum errs by at most u times the sum of the |terms| so far for each addition on the longest
    way through it (Higham, chapter 4). A block is scanned in twice log2 of its columns at most, and a carry goes
    through an addition for each block before."""
    (x,) = as_tensors(inputs)
    return x.abs().cumsum(dim=-1).mul_(_additions(x) * U32)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the |terms| so far, [M, N]."""
    (x,) = as_tensors(inputs)
    return x.abs().cumsum(dim=-1)


def _additions(x: torch.Tensor) -> torch.Tensor:
    """Returns the additions on the longest way to each column, [N]: 2 log2 of the columns so far, one for each
    LEAST_BLOCK of them, and 2 for what is of second order."""
    so_far = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    return 2 + 2 * so_far.log2() + so_far / LEAST_BLOCK
