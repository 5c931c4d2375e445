"""The mistake of an address that lacks a part: what belongs to the first row, batch or head is used for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from grader.numerics.arguments import Argument, as_tensor
from grader.operations.hypothesis import Hypothesis, with_others
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = ("row-zero", "batch-zero", "head-zero")


class FirstOfAll(Sentence):
    """Sentences about rows that are made from the first row."""

    FIRST_OF_ALL = "Every {part} is made from {part} 0 of {argument}."


def mistakes(
    evidence: Compared, inputs: Sequence[Argument], id: str, axis: int = 0, part: str = "row"
) -> Iterator[Hypothesis]:
    """Yields the use of the first index along an axis of the first argument for all of them."""
    x = as_tensor(inputs[0])
    if x.shape[axis] > 1:
        said = FirstOfAll.FIRST_OF_ALL(part=part, argument=evidence.exercise.arguments[0])
        yield from with_others(evidence, id, said, inputs, {0: x.narrow(axis, 0, 1).expand_as(x)})
