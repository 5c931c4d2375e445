"""Softmax along rows that are read block by block, with a maximum and a sum so far: x [M, N] -> z [M, N].

Mistakes that have nothing to do with blocks are softmax's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument, as_tensor
from grader.numerics.roundoff import U32
from grader.operations import softmax

LEAST_BLOCK = 256  # columns that a right kernel takes at a time, of long rows
ROUNDINGS = 4  # of the sum, in each iteration


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns softmax's c S, and for each iteration ROUNDINGS u |z| more: the sum is multiplied by an exponential,
    which errs by 2 u, and added to, at 1 u each.

    If the maximum does not grow, the factor is 1, and exact. In rows that rise slowly all errors have one sign: then
    they add up to the number of iterations times 0.3 u, measured in numpy.
    """
    iterations = as_tensor(inputs[0]).shape[-1] / LEAST_BLOCK
    return softmax.rounding(inputs, ref).add_(ref.abs(), alpha=ROUNDINGS * iterations * U32)
