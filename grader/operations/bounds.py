"""The bounds of operations: how far a right kernel's result may lie from the exact result, by a model of its rounding.

    tolerance_i = 1.25 u_out |ref_i|  +  c S_i  +  eta  +  u_out R_i  +  eta L_i

u_out is the unit roundoff of the output's dtype: one correct rounding costs 1.0 of it, the rest is slack. S_i sums
|terms| that make output i, so cancellation is paid for where it happens and nowhere else; c counts roundings of fp32
arithmetic (u32 = 2**-24). eta is what may be lost near 0: half a step of subnormal fp16; in fp32 and bf16, with the
same slack, all of a number that is flushed to 0. R and L are for a right kernel that converts to the output's dtype on
its way: R is what that rounding is relative to, L is how often what it loses near 0 counts. The summands are added for
each element; no share of wrong elements is ever allowed. Sources: N. Higham, Accuracy and Stability of Numerical
Algorithms, chapters 3 and 4 (sums, products), and the blocked order in which kernels add.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import ETA, EXACT, UNIT_ROUNDOFF, UNJUDGED
from grader.operations import named

NOT_COMPUTED = (*EXACT, UNJUDGED)  # bounds of which no tolerance is made


def tolerance(
    bound: str, inputs: Sequence[Argument], ref: torch.Tensor, dtype: torch.dtype, share: float = 1.0
) -> torch.Tensor:
    """Returns the largest |out - ref| that rounding explains, [shape of ref], in the precision of ref; 0 for exact
    bounds.

    `dtype` is the output's; `share` is the share of c S, for arithmetic in fp32, that counts.
    """
    if bound in EXACT:
        return torch.zeros_like(ref)
    accumulated = arithmetic(bound, inputs, ref).mul_(share)
    allowed = accumulated.add_(ref.abs(), alpha=1.25 * UNIT_ROUNDOFF[dtype]).add_(ETA[dtype])
    if (conversion := getattr(named(bound), _of_result(bound, "conversion"), None)) is not None:
        rounded, lost = conversion(inputs, ref)
        allowed.add_(rounded, alpha=UNIT_ROUNDOFF[dtype]).add_(lost, alpha=ETA[dtype])
    return allowed


def arithmetic(bound: str, inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, how much arithmetic in fp32 may add to the error, for a bound that is not exact; [shape of ref]."""
    return getattr(named(bound), _of_result(bound, "rounding"))(inputs, ref)


def _of_result(bound: str, what: str) -> str:
    """Returns the name of an operation's function: "rounding_of_mean" for the bound "layer_norm.mean", else `what`
    alone."""
    _, _, result = bound.partition(".")
    return f"{what}_of_{result}" if result else what


def size_of_terms(bound: str, inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns what rounding on the way is relative to, [shape of ref]: the size of the result or, for a sum, the sum of
    its |terms|, which stays large where they cancel."""
    if bound in EXACT:
        return ref.abs()
    terms = getattr(named(bound), _of_result(bound, "terms"), None) or getattr(named(bound), "terms", None)
    return ref.abs() if terms is None else terms(inputs, ref)


def held(bound: str, shapes: Sequence[Sequence[int]]) -> int:
    """Returns how many numbers a tolerance keeps at a time besides copies of the inputs, which have these shapes."""
    found = None if bound in NOT_COMPUTED else getattr(named(bound), "held", None)
    return 0 if found is None else found(shapes)
