"""Rotary position embedding: q [B, H, S, D], cos and sin [P, D / 2], positions [B, S] -> z [B, H, S, D]."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import U32


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Two products and their sum in fp32, each rounded: at most 2 u of |first product| + |second product|."""
    return terms(inputs, ref) * (2 * U32)


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Of each sum that of its two |products|."""
    q, cos, sin, positions = inputs
    a, e = q.abs().chunk(2, dim=-1)
    c, n = (table.abs()[positions][:, None] for table in (cos, sin))
    return torch.cat((a * c + e * n, e * c + a * n), dim=-1)
