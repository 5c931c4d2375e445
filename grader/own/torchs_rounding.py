"""The bound of a result whose operation nobody has described: by what torch's own run of the reference errs.

Two rules judge a value. **Formula**: the exact run of the call, in which every float has 64 bits, is off by at most
FORMULA of the largest value. **Rounding**: the call as written is off by at most

    MULTIPLE * (the largest error of torch's own run of the reference in the call's dtypes)
    + FLOOR * u * (the largest value) + the last rounding of the result's dtype

where torch's run is compared with the reference in float64, as the kernel's is, and u is the unit roundoff of the
result's dtype. The floor is for results of few elements, which torch may hit by luck. The first rule finds wrong
formulas, however small; so the second has to find nothing but lost digits, and may be wide.

Whole numbers have to be the same, but where rounding decides them: a quotient that lies next to the half of two steps,
as in a kernel that quantizes, may become either. `OpenSteps` finds these places: there the reference gives several
numbers as soon as its inputs are moved by a few roundings.

Measured on the stated calls of the course's 23 exercises, with their references in the place of one's own, on the CPU
that torch 2.13 and Triton 3.7.1 ran on. All 23 solutions take at most 0.57 of the bound (901 results), and 45 of 46
accepted kernels at most 0.76; the other one, an attention that rounds quotients, is beyond it in one call, made of sums
that cancel to the bit. No exact run of a right kernel is off by more than 1e-11 of the largest value. Of 63 mutants
that lose digits, 55 show in some call; 42 of these are refused, nearly all by a factor of 30 and more, and the 13
others round to 16 bits where torch, in 16 bits, rounds too. A multiple of 16 in fp32 refuses a right sum of a row,
whose terms cancel; 64 lets one mutant more pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import FLUSHED, UNIT_ROUNDOFF
from grader.own.cannot_judge import CannotJudge
from grader.own.own_reference import OwnReference

FORMULA = 1e-5  # of the largest value: constants of fp32 need it
MULTIPLE, FLOOR = 32, 8  # for results in fp32
FEW = 16  # elements of a result
MOVES, MOVE = 6, 16  # how often inputs are moved, by how many roundings of fp32
OF_16_BITS = 2, 0.5  # the same: torch rounds after each operation, and a kernel need not


@dataclass(eq=False)
class OfTheLargest:
    """The model of an exact run, or of a kernel that approximates: off by a share of the largest value."""

    share: float

    def __call__(self, ref: torch.Tensor, *inputs: Argument) -> torch.Tensor:
        """Returns how far a right result may lie from `ref`, [shape of ref]."""
        return torch.full_like(ref, self.share * scale_of(inputs, ref) + FLUSHED)


@dataclass(eq=False)
class RoundingOfTorch:
    """The model of the results at these places, whose bound is one. `dtypes`: of the arguments, None for numbers;
    `dtype`: of the results. `approximates`: what the kernel's author states, as a share of the largest value."""

    reference: OwnReference
    places: tuple[int, ...]
    dtypes: list[torch.dtype | None]
    dtype: torch.dtype
    approximates: float = 0.0

    def __call__(self, ref: torch.Tensor, *inputs: Argument) -> torch.Tensor:
        """Returns how far a right kernel's arithmetic may lead from `ref`, [shape of ref]; `inputs` are in float64."""
        multiple, floor = OF_16_BITS if self._has_16_bits else (MULTIPLE, FLOOR)
        share = floor * UNIT_ROUNDOFF[self.dtype] + self.approximates
        return torch.full_like(ref, multiple * self._of_torch(inputs) + share * scale_of(inputs, ref))

    def _of_torch(self, inputs: Sequence[Argument]) -> float:
        """Returns the largest error of torch's own run; NaN and infinities are no errors of rounding. In 16 bits it is
        that beyond the last rounding, which the bound allows anyway and which there is as large as all others."""
        given = [one.to(own) if isinstance(one, torch.Tensor) and own else one for one, own in zip(inputs, self.dtypes)]
        try:
            exact, written = self.reference.exactly(*inputs), self.reference.as_written(*given)
        except CannotJudge:  # for numbers that an explanation supposes
            return 0.0
        last = 1.25 * UNIT_ROUNDOFF[self.dtype] if self._has_16_bits else 0.0
        pairs = [(exact[place], written[place]) for place in self.places]
        errors = [(one.double() - ref).abs() - last * ref.abs() for ref, one in pairs if one.shape == ref.shape]
        return max((largest(error.clamp(min=0)) for error in errors), default=0.0)

    @property
    def _has_16_bits(self) -> bool:
        return self.dtype.itemsize == 2


@dataclass(eq=False)
class OpenSteps:
    """How far whole numbers of a right kernel may lie from the reference's, because rounding decides them.

    It is asked only about results that are not the same: of nearly all calls the reference is run once.
    """

    reference: OwnReference

    def __call__(self, place: int, ref: torch.Tensor, inputs: Sequence[Argument]) -> torch.Tensor:
        """Returns the distance for the result at this place of what the reference returns, [shape of ref], float64; 0
        where nothing is open. `ref`: that result; `inputs`: in their own dtypes."""
        open_by = torch.zeros(ref.shape, dtype=torch.float64)
        generator = torch.Generator().manual_seed(0)
        try:
            others = [self.reference.as_written(*inputs)[place]]
            others += [self.reference.exactly(*_moved(inputs, generator))[place] for _ in range(MOVES)]
        except CannotJudge:  # as for a value that a move leads out of the reference's domain
            return open_by
        for other in others:
            if other.shape == ref.shape:
                open_by = torch.maximum(open_by, (other.double() - ref.double()).abs())
        return open_by


def _moved(inputs: Sequence[Argument], generator: torch.Generator) -> list[Argument]:
    """Returns the inputs in float64, each of their floats moved up or down by a few roundings of fp32."""
    moved: list[Argument] = []
    for one in inputs:
        if isinstance(one, torch.Tensor) and one.is_floating_point():
            up = torch.randint(0, 2, one.shape, generator=generator) * 2 - 1
            one = one.double() * (1 + up * MOVE * UNIT_ROUNDOFF[torch.float32])
        moved.append(one)
    return moved


def scale_of(inputs: Sequence[Argument], ref: torch.Tensor) -> float:
    """Returns what errors are relative to: the largest value of a result. Those of few elements may all lie near 0 by
    chance, where terms cancel: then the largest input counts too."""
    floats = [one for one in inputs if isinstance(one, torch.Tensor) and one.is_floating_point()]
    others = floats if ref.numel() < FEW else []
    return max(map(largest, (ref, *others)))


def largest(values: torch.Tensor) -> float:
    """Returns the largest of the finite |values|; 0 without any."""
    finite = values[values.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0
