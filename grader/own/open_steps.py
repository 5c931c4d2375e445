"""Whole numbers of a result that rounding decides.

Whole numbers have to be the same, but where rounding decides them: a quotient that lies next to the half of two steps,
as in a kernel that quantizes, may become either. `OpenSteps` finds these places: there the reference gives several
numbers as soon as its inputs are moved by a few roundings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from grader.numerics.arguments import Argument
from grader.numerics.roundoff import UNIT_ROUNDOFF
from grader.own.cannot_judge import CannotJudge
from grader.own.own_reference import OwnReference

MOVES, MOVE = 6, 16  # how often inputs are moved, by how many roundings of fp32


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
