"""SwiGLU with its gradients: dz, gate, up [M, N] -> z = silu(gate) * up, dgate, dup [M, N], of sum(dz * z).

silu(g) = g * sigmoid(g), sigmoid(g) = 1 / (1 + exp(-g)).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32

LEAST_SIGMOID = 2.0**-125  # twice the smallest normal number: for a smaller sigmoid exp(-g) or 1 / exp(-g) may give 0


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of z, [M, N]. exp of a rounded argument errs by |g| u and its own 2 ulp; sum, division of 2 ulp and
    products err by about 8 u; 9 are allowed, so that torch in fp32 takes less than half: in 29 million elements on an
    H200 it took up to 0.514 of what 8 would allow.

    Below -88.7 exp(-g) is infinite and sigmoid 0: what is lost is no more than LEAST_SIGMOID of |g up|.
    """
    _, gate, up = as_tensors(inputs)
    return _of_silu_times(up, gate, ref)


def rounding_of_dup(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of dup, [M, N]: that of z, with dz instead of up."""
    dz, gate, _ = as_tensors(inputs)
    return _of_silu_times(dz, gate, ref)


def _of_silu_times(factor: torch.Tensor, gate: torch.Tensor, ref: torch.Tensor) -> torch.Tensor:
    lost = (gate * factor).abs_().mul_(LEAST_SIGMOID)
    return gate.abs().mul_(2).add_(9).mul_(ref.abs()).mul_(U32).add_(lost)


def rounding_of_dgate(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of dgate, [M, N]. Sigmoid has the same relative error, and there are three products more, in both
    terms of 1 + g (1 - s), which may cancel; then 1 - s, or silu - silu s, loses about 4 u of |g| s. Torch in fp32 took
    up to 0.616 of what 8 would allow (H200)."""
    dz, gate, up = as_tensors(inputs)
    size = gate.abs()
    s, rest = torch.sigmoid(gate), torch.sigmoid(-gate)
    factor = (11 + 2 * size).mul_((size * rest).add_(1)).add_(size * s, alpha=4)
    return factor.mul_(s).mul_(U32).add_(size.add_(1), alpha=LEAST_SIGMOID).mul_((dz * up).abs_())
