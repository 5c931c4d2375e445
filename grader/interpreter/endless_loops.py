"""Loops that cannot end: a `while` whose condition asks for numbers that no turn changes.

The condition, and what a turn makes of the numbers that it asks for, is arithmetic alone, which gives the same for the
same numbers: where these are after a turn what they were before it, every further turn is like this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.interpreter.batch import TooLong

if TYPE_CHECKING:
    from grader.ttir.module import Block, Operation

PURE = ("arith.", "math.")  # beginnings of names of operations
PURE_TOO = frozenset({"tt.get_program_id", "tt.get_num_programs"})
WHY = "no turn of the loop changes what its condition asks for"


class Endless(TooLong):
    """The launch is in a loop that has been seen to have no end."""


def deciding(loop: Operation) -> frozenset[int] | None:
    """Which of the values that a `while` carries its condition depends on, from turn to turn, by their places.

    None where more than arithmetic decides, such as a load.
    """
    if any(len(region) != 1 for region in loop.regions):
        return None
    (before,), (after,) = loop.regions
    condition, *given = before.operations[-1].operands
    found, wanted = set[int](), _places(before, condition)
    while wanted is not None and not wanted <= found:
        found |= wanted
        wanted = _all(_in_turn(before, after, given, place) for place in found)
    return None if wanted is None else frozenset(found)


def stays(places: frozenset[int], before: Sequence[Any], after: Sequence[Any], going: np.ndarray) -> bool:
    """Tells if a program that goes on carries the same whole numbers in these places after a turn as before it."""
    same = going
    for place in places:
        one, two = before[place], after[place]
        if not (isinstance(one, np.ndarray) and isinstance(two, np.ndarray)) or one.dtype.kind not in "iub":
            return False
        alike = np.asarray(one == two)
        same = same & np.broadcast_to(alike.reshape(len(alike), -1).all(axis=1), going.shape)
    return bool(same.any())


def _in_turn(before: Block, after: Block, given: Sequence[int], place: int) -> set[int] | None:
    """The places of the carried values that this one is made of in a turn."""
    made_of = _places(after, after.operations[-1].operands[place])
    return None if made_of is None else _all(_places(before, given[one]) for one in made_of)


def _places(block: Block, value: int) -> set[int] | None:
    """The places of the block's arguments that a value is made of by arithmetic alone; None where it is not."""
    if value in block.arguments:
        return {block.arguments.index(value)}
    maker = next((operation for operation in block.operations if value in operation.results), None)
    if maker is None:  # from before the loop
        return set()
    if not maker.name.startswith(PURE) and maker.name not in PURE_TOO:
        return None
    return _all(_places(block, operand) for operand in maker.operands)


def _all(places: Any) -> set[int] | None:
    """All of them; None where one of them is None."""
    found: set[int] = set()
    for one in places:
        if one is None:
            return None
        found |= one
    return found
