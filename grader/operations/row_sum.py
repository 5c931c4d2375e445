"""Sums along the rows of a matrix, kept in fp32: x [M, N] -> z [M]."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32

LEAST_PARTIAL_SUMS = 64  # the fewest that a right kernel may keep


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [M]: a sum errs by at most u times the sum of the |terms| for each addition on the longest way
    through it (Higham, chapter 4). With 64 partial sums this way has N / 64 additions, and 6 to add these sums up in
    pairs; 2 more pay for what is of second order. More partial sums make the way no longer: 2048 take 11 to be added
    up, and 8 + N / 64 is 40 once each of them has a term."""
    (x,) = as_tensors(inputs)
    return x.abs().sum(dim=-1).mul_((8 + x.shape[-1] / LEAST_PARTIAL_SUMS) * U32)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the |terms| of each row, [M]."""
    (x,) = as_tensors(inputs)
    return x.abs().sum(dim=-1)
