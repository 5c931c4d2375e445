"""The bounds of results: how far a right kernel's result may lie from the exact result, by a model of its rounding.

    tolerance_i = 1.25 u_out |ref_i|  +  c S_i  +  eta  +  u_out R_i  +  eta L_i

u_out is the unit roundoff of the output's dtype: one correct rounding costs 1.0 of it, the rest is slack. S_i sums
|terms| that make output i, so cancellation is paid for where it happens and nowhere else; c counts roundings of fp32
arithmetic (u32 = 2**-24). eta is what may be lost near 0: half a step of subnormal fp16; in fp32 and bf16, with the
same slack, all of a number that is flushed to 0. R and L are for a right kernel that converts to the output's dtype on
its way: R is what that rounding is relative to, L is how often what it loses near 0 counts. The summands are added for
each element; no share of wrong elements is ever allowed. Sources: N. Higham, Accuracy and Stability of Numerical
Algorithms, chapters 3 and 4 (sums, products), and the blocked order in which kernels add.

An exercise states the model of each of its results in its test file, with the source of each formula; models that
several exercises share are in grader/numerics/rounding_models.py. A result with a single rounding has the bound
"exact", and no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import ETA, UNIT_ROUNDOFF


@dataclass(frozen=True)
class RoundingModel:
    """A model of a right kernel's rounding in one result, as functions of the exact result and the call's arguments.

    The functions are called as arithmetic(z, x, weight): with the result, then with the entry's arguments in their
    order. Tensors are in float64 (float32 for `comparison.quick_error`) or int64, and Python's numbers as they are.
    What they return has the shape of the result.

    arithmetic: returns c S, how much arithmetic in fp32 may add to the error. conversion: returns R and L, where a
    right kernel converts to the output's dtype on its way. terms: returns what a rounding on the way is relative to,
    where that is not the result: for a sum it is the sum of its |terms|. held: returns how many numbers the functions
    keep at a time besides the inputs, from the shapes of the tensor arguments, where that is more than a few copies of
    the inputs. in_dtype: returns the model for results of a dtype, where it depends on that. is_of_torch: what torch's
    own run errs makes the bound, which is wide: numerics/torchs_rounding.py says what else judges such a result.
    """

    arithmetic: Callable[..., torch.Tensor]
    conversion: Callable[..., tuple[torch.Tensor, torch.Tensor]] | None = None
    terms: Callable[..., torch.Tensor] | None = None
    held: Callable[..., int] | None = None
    in_dtype: Callable[[torch.dtype], RoundingModel] | None = None
    is_of_torch: bool = False


Bound = str | RoundingModel  # of a result: a name of numerics/roundoff.py where no rounding is allowed for, or a model


def tolerance(
    bound: Bound, inputs: Sequence[Argument], ref: torch.Tensor, dtype: torch.dtype, share: float = 1.0
) -> torch.Tensor:
    """Returns the largest |out - ref| that rounding explains, [shape of ref], in the precision of ref; 0 for a bound
    without a model.

    `dtype` is the output's; `share` is the share of c S, for arithmetic in fp32, that counts.
    """
    if isinstance(bound, str):
        return torch.zeros_like(ref)
    if bound.in_dtype is not None:
        bound = bound.in_dtype(dtype)
    accumulated = bound.arithmetic(ref, *inputs).mul_(share)
    allowed = accumulated.add_(ref.abs(), alpha=1.25 * UNIT_ROUNDOFF[dtype]).add_(ETA[dtype])
    if bound.conversion is not None:
        rounded, lost = bound.conversion(ref, *inputs)
        allowed.add_(rounded, alpha=UNIT_ROUNDOFF[dtype]).add_(lost, alpha=ETA[dtype])
    return allowed


def size_of_terms(bound: Bound, inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns what rounding on the way is relative to, [shape of ref]: the size of the result or, for a sum, the sum of
    its |terms|, which stays large where they cancel."""
    if isinstance(bound, str) or bound.terms is None:
        return ref.abs()
    return bound.terms(ref, *inputs)


def held(bound: Bound, shapes: Sequence[Sequence[int]]) -> int:
    """Returns how many numbers a tolerance keeps at a time besides copies of the inputs, which have these shapes."""
    return 0 if isinstance(bound, str) or bound.held is None else bound.held(*shapes)
