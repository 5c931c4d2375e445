"""Rotary position embedding: q [B, H, S, D], cos and sin [P, D / 2], positions [B, S] -> z [B, H, S, D].

a and e are the halves of a head, c and n the rows of cos and sin at its position: z = (a c - e n, e c + a n).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [B, H, S, D]: twice the error of two products in fp32 and their sum, each rounded once. This error
    is 2 u of |a c| + |e n|; a fused multiply-add takes less.

    It counts twice since torch in fp32, with which timed results are compared first, rounds as often: in 67 million
    elements it took up to 0.99 of 2 u.
    """
    return terms(inputs, ref).mul_(4 * U32)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the two |products| of each element, [B, H, S, D]."""
    q, cos, sin, positions = as_tensors(inputs)
    a, e = q.abs().chunk(2, dim=-1)
    c, n = (table[positions][:, None].abs() for table in (cos, sin))
    return torch.cat((a * c + e * n, e * c + a * n), dim=-1)
