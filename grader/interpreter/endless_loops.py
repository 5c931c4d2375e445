"""Detects loops that cannot end: a `while` whose condition depends on numbers that no iteration changes.

Only arithmetic may compute the condition and the new values of the numbers that it depends on, since arithmetic gives
the same results for the same numbers. If an iteration leaves these numbers as they were, every further iteration does
the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grader.interpreter.batch import TooLong
from grader.ttir.module import Block, Operation

PURE = ("arith.", "math.")  # beginnings of names of operations
PURE_TOO = frozenset({"tt.get_program_id", "tt.get_num_programs"})
WHY = "no iteration of the loop changes what its condition asks for"


class Endless(TooLong):
    """The launch is in a loop that provably has no end."""


def deciding(loop: Operation) -> frozenset[int] | None:
    """Returns the positions of the carried values of a `while` on which its condition depends, over all iterations.

    None where more than arithmetic decides, for example a load.
    """
    if any(len(region) != 1 for region in loop.regions):
        return None
    (before,), (after,) = loop.regions
    condition, *operands = before.operations[-1].operands
    places, wanted = set[int](), _places(before, condition)
    while wanted is not None and not wanted <= places:
        places |= wanted
        wanted = _all(_in_turn(before, after, operands, place) for place in places)
    return None if wanted is None else frozenset(places)


def stays(places: frozenset[int], before: Sequence[Any], after: Sequence[Any], going: np.ndarray) -> bool:
    """Returns whether a program in `going` has the same integers at these positions after an iteration as before."""
    same = going
    for place in places:
        one, two = before[place], after[place]
        if not (isinstance(one, np.ndarray) and isinstance(two, np.ndarray)) or one.dtype.kind not in "iub":
            return False
        alike = np.asarray(one == two)
        same = same & np.broadcast_to(alike.reshape(len(alike), -1).all(axis=1), going.shape)
    return bool(same.any())


def _in_turn(before: Block, after: Block, operands: Sequence[int], place: int) -> set[int] | None:
    """Returns the positions of the carried values from which an iteration computes the carried value at `place`.

    None where more than arithmetic takes part.
    """
    made_of = _places(after, after.operations[-1].operands[place])
    return None if made_of is None else _all(_places(before, operands[one]) for one in made_of)


def _places(block: Block, value: int) -> set[int] | None:
    """Returns the positions of the block's arguments from which arithmetic alone computes a value.

    None where more than arithmetic takes part; the empty set for a value from before the loop.
    """
    if value in block.arguments:
        return {block.arguments.index(value)}
    maker = next((operation for operation in block.operations if value in operation.results), None)
    if maker is None:  # from before the loop
        return set()
    if not maker.name.startswith(PURE) and maker.name not in PURE_TOO:
        return None
    return _all(_places(block, operand) for operand in maker.operands)


def _all(places: Any) -> set[int] | None:
    """Returns the union of these sets; None where any of them is None."""
    union: set[int] = set()
    for positions in places:
        if positions is None:
            return None
        union |= positions
    return union
