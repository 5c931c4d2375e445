"""Softmax along the rows of a matrix: x [M, N] -> z [M, N]."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S = (20 + 2 |x - max|) u |z|, [M, N]: exp of a rounded difference errs by |x - max| u; division, exp
    and the blocked sum add about 20 u."""
    (x,) = as_tensors(inputs)
    largest = x.amax(dim=-1, keepdim=True)
    factor = torch.sub((20 + 2 * largest) * U32, x, alpha=2 * U32)  # in one pass: timed results are checked with it too
    return factor.nan_to_num_(posinf=0.0).mul_(ref.abs())
