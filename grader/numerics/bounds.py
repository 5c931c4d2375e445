"""How far a right kernel's result may lie from the exact one: a model of rounding per operation, not a taste.

    tolerance_i = 1.25 u_out |ref_i|  +  c S_i  +  eta

u_out is the unit roundoff of the output's dtype: one correct rounding costs 1.0 of it, the rest is slack. S_i sums
|terms| that make output i, so cancellation is paid for where it happens and nowhere else; c counts roundings of fp32
arithmetic (u32 = 2**-24). eta is what may be lost near 0: half a step of subnormal fp16, and with the same slack all of
a number that is flushed to 0, in fp32 and bf16. The terms are added per element; no share of wrong elements is ever
allowed. Sources: N. Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4 (sums, products), and the
blocked order in which kernels add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

U32 = 2.0**-24
UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: U32, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
FLUSHED = 1.25 * 2.0**-126  # less than the smallest normal number of fp32 and bf16
ETA = {torch.float64: 0.0, torch.float32: FLUSHED, torch.float16: 2.0**-24, torch.bfloat16: FLUSHED}

# "bits": the same bits, for copies. "exact": the exact result rounded once (-0.0 equals 0.0).
EXACT = ("bits", "exact")


def _softmax(inputs: Sequence[torch.Tensor], ref: torch.Tensor) -> torch.Tensor:
    """exp of a rounded difference errs by |x - max| u; division, exp and the blocked sum add about 20 u."""
    (x,) = inputs
    largest = x.amax(dim=-1, keepdim=True)
    factor = torch.sub((20 + 2 * largest) * U32, x, alpha=2 * U32)  # in one pass: timed results are checked with it too
    return factor.nan_to_num_(posinf=0.0).mul_(ref.abs())


def _gemm(inputs: Sequence[torch.Tensor], ref: torch.Tensor) -> torch.Tensor:
    """Blocked fp32 sums grow like the square root of the steps; tensor cores truncate: the second term."""
    a, b = inputs
    steps = a.shape[-1] / 16
    return (4 * math.sqrt(steps + 4) + 2 * steps) * U32 * (a.abs() @ b.abs())


# Of each, for matrices: row i of the result is made of row i of the first input, and of all of the others.
ACCUMULATED: dict[str, Callable[[Sequence[torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "softmax": _softmax,
    "gemm": _gemm,
}


def tolerance(
    bound: str, inputs: Sequence[torch.Tensor], ref: torch.Tensor, dtype: torch.dtype, share: float = 1.0
) -> torch.Tensor:
    """Largest |out - ref| that rounding explains; [shape of ref], in its precision. 0 everywhere for exact bounds.

    `share`: of c S, what arithmetic in fp32 may add.
    """
    if bound in EXACT:
        return torch.zeros_like(ref)
    accumulated = ACCUMULATED[bound](inputs, ref).mul_(share)
    return accumulated.add_(ref.abs(), alpha=1.25 * UNIT_ROUNDOFF[dtype]).add_(ETA[dtype])


def inputs_of(bound: str, rows: slice, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """What `tolerance` has to know for these rows of the result; `rows` is a slice of its first dimension."""
    return [] if bound in EXACT else [inputs[0][rows], *inputs[1:]]
