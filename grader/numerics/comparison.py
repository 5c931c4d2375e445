"""The comparison of a result with the exact result: each element has to lie within the result's bound.

There is no tolerance to be tuned here: a bound models the rounding of the computation that the lesson asks for, and NaN
and inf have to stand exactly where the reference has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from grader.numerics.arguments import Argument
from grader.numerics.bounds import Bound, RoundingModel, tolerance
from grader.numerics.poison import BITS
from grader.numerics.roundoff import EXACT, UNIT_ROUNDOFF, UNJUDGED

MOST_COMPARED = 1 << 24  # elements that are compared at a time: memory may be short
BYTES_PER_ELEMENT = 80  # of each element compared: float64, and what a comparison keeps


@dataclass
class Comparison:
    """A result and its reference, [any shape, the same for all]. `error` is |out - ref| in units of the bound; it is
    infinite where out has to equal `expected`, and does not."""

    out: torch.Tensor  # the submission's dtype
    expected: torch.Tensor  # ref rounded to that dtype
    ref: torch.Tensor  # float64
    wrong: torch.Tensor  # bool
    error: torch.Tensor  # float64

    @property
    def right(self) -> bool:
        return not bool(self.wrong.any())

    @property
    def wrong_count(self) -> int:
        return int(self.wrong.sum())

    @property
    def largest_error(self) -> float:
        """The worst element's error as a multiple of the bound; 0 for an empty result."""
        return float(self.error.max()) if self.error.numel() else 0.0

    @property
    def first_wrong(self) -> tuple[int, ...]:
        """Index of the first wrong element in C order."""
        return first_index(self.wrong)


def first_index(flags: torch.Tensor) -> tuple[int, ...]:
    """Returns the index of the first True in C order; all zeros if there is none. flags: [any shape], bool."""
    position = int(flags.flatten().to(torch.uint8).argmax())
    # NumPy's: the first call of torch's imports 480 modules, which takes 1.6 s.
    return tuple(map(int, np.unravel_index(position, tuple(flags.shape))))


def compare(out: torch.Tensor, ref: torch.Tensor, bound: Bound, inputs: Sequence[Argument]) -> Comparison:
    """Returns the comparison of a result with its reference. `ref` and `inputs` are in float64.

    NaN, +inf and -inf must stand exactly where the reference has them, once that is rounded to the result's dtype.
    """
    expected = ref.to(out.dtype)
    if bound == UNJUDGED:
        nowhere = torch.zeros(out.shape, dtype=torch.bool, device=out.device)
        return Comparison(out, expected, ref, nowhere, _infinite_where(nowhere))
    if bound == "bits":
        wrong = bits_of(out) != bits_of(expected)
        wrong &= ~(out.isnan() & expected.isnan())
        return Comparison(out, expected, ref, wrong, _infinite_where(wrong))
    if bound == "exact":
        wrong = (out != expected) & ~(out.isnan() & expected.isnan())
        return Comparison(out, expected, ref, wrong, _infinite_where(wrong))
    allowed = tolerance(bound, inputs, ref, out.dtype)
    distance = (out.double() - ref).abs()
    # A finite reference past the largest finite number of the dtype, and half a step more, rounds to infinity: then
    # infinity is right. Where arithmetic may lead past it, but need not, both are.
    limit, unit = torch.finfo(out.dtype).max, UNIT_ROUNDOFF[out.dtype]
    computed = (allowed - 1.25 * unit * ref.abs()).clamp(0, limit / 2)
    finite = out.isfinite() & ref.isfinite()
    same = (out == expected) | (out.isnan() & expected.isnan())
    same |= (out == ref.sign() * torch.inf) & (ref.abs() + computed >= limit * (1 + unit / 2))
    if isinstance(bound, RoundingModel) and bound.is_of_torch:
        same |= out.isinf() & allowed.isinf()  # torch's own numbers get too large there
    error = torch.where(finite, distance / allowed, _infinite_where(~same))
    return Comparison(out, expected, ref, error > 1, error)


def is_right(out: torch.Tensor, ref: torch.Tensor, bound: Bound, inputs: Sequence[Argument]) -> bool:
    """Returns what `compare(...).right` is, with far fewer passes over memory where everything is finite and right.

    For the bound "bits" `ref` may be in the dtype of the result: a copy is exact in any dtype.
    """
    return bool(surely_right(out, ref, bound, inputs)) or compare(out, ref, bound, inputs).right


def surely_right(out: torch.Tensor, ref: torch.Tensor, bound: Bound, inputs: Sequence[Argument]) -> torch.Tensor:
    """Returns whether a quick look finds a result right; [], bool, on the result's device: the host need not wait.

    It is False for some right results: for results that are empty or not all finite, and for few others. It is True for
    a wrong result only where the bound is "exact", the reference is in float32 and takes several operations: then
    torch's own roundings pass.
    """
    return quick_error(out, ref, bound, inputs) <= 1


def quick_error(out: torch.Tensor, ref: torch.Tensor, bound: Bound, inputs: Sequence[Argument]) -> torch.Tensor:
    """Returns the worst element's error as a multiple of the bound, [], on the result's device. It is more than 1, or
    NaN, where a quick look cannot tell.

    `ref` and `inputs` may be in float32: then half of what arithmetic in float32 may add is for the reference, and the
    result has the other half.
    """
    if bound == UNJUDGED:
        return torch.zeros((), device=out.device)
    if bound in EXACT:
        expected = ref.to(out.dtype)
        same = bits_of(out) == bits_of(expected) if bound == "bits" else out == expected
        return torch.where(same.all(), 0.0, torch.inf)
    if not out.numel():
        return torch.full((), torch.inf, device=out.device)
    share = 1.0 if ref.dtype == torch.float64 else 0.5
    allowed = tolerance(bound, inputs, ref, out.dtype, share)
    least, most = ref.aminmax()
    representable = (torch.maximum(-least, most) <= torch.finfo(out.dtype).max) & allowed.max().isfinite()
    return torch.where(representable, (out - ref).abs_().div_(allowed).max(), torch.inf)


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """Returns integers with the same bits; [same shape]."""
    return tensor.contiguous().view(BITS[tensor.element_size()])


def other_bits(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns which elements differ in their bits, [same shape], bool. Any two NaNs count as equal."""
    return (bits_of(one) != bits_of(other)) & ~(one.isnan() & other.isnan())


def row_slices(rows: int, step: int) -> list[slice]:
    """Returns the slices, of at most `step` rows each, in which a result of `rows` rows is compared."""
    return [slice(start, start + step) for start in range(0, rows, step)]


def _infinite_where(wrong: torch.Tensor) -> torch.Tensor:
    return torch.zeros(wrong.shape, dtype=torch.float64, device=wrong.device).masked_fill_(wrong, torch.inf)
