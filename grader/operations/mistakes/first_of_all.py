"""The mistake of an address that lacks a part: what belongs to the first row, batch or head is used for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from grader.numerics.arguments import Argument, as_tensor
from grader.operations.hypothesis import Hypothesis, listed, with_others
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

CAUSES = ("row-zero", "batch-zero", "head-zero")


class FirstOfAll(Sentence):
    """Sentences about rows that are made from the first row."""

    FIRST_OF_ALL = "Every {part} is made from {part} 0 of {names}."


def mistakes(
    evidence: Compared,
    inputs: Sequence[Argument],
    id: str,
    axis: int = 0,
    part: str = "row",
    places: Sequence[int] = (0,),
) -> Iterator[Hypothesis]:
    """Yields the use of the first index along an axis for all of them, in the arguments at these places together."""
    given = {place: as_tensor(inputs[place]) for place in places}
    if any(one.shape[axis] > 1 for one in given.values()):
        said = FirstOfAll.FIRST_OF_ALL(part=part, names=listed(evidence, places))
        first = {place: one.narrow(axis, 0, 1).expand_as(one) for place, one in given.items()}
        yield from with_others(evidence, id, said, inputs, first)
