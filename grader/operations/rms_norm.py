"""RMS norm of a sum of two matrices, which one of them keeps: x, residual [M, N], weight [N], eps -> z, residual."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import U32


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S = 16 u |z|, [M, N]: squares never cancel, so all errors are relative to z itself.

    The sum and two products err by 3 u, the mean of squares by at most 10 u, of which the root keeps half: 2 of the
    sum, 1 of the square, 4 of adding in blocks, 3 of the division and eps. Root and reciprocal are approximate on a
    GPU, 2 and 4 u (CUDA C++ Programming Guide, mathematical functions; PTX ISA, sqrt.approx and div.full).
    """
    return ref.abs().mul_(16 * U32)
