"""Mistakes with vectors that hold a number for each column, such as a weight: left out, or read at the wrong place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor
from grader.operations.hypothesis import Hypothesis, with_others
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = ("no-weight", "vector-by-row")
PLAIN_CAUSES = ("no-bias", "one-weight")


class ColumnVectors(Sentence):
    """Sentences about a weight that multiplies each column, and a bias that is added to each."""

    NO_WEIGHT = "{result} is not multiplied by {weight}."
    NO_BIAS = "{bias} is not added to {result}."
    NEITHER_USED = "Neither {weight} nor {bias} is used."
    BY_ROW = "{vectors} taken by the row's number: each column has its own, the same in all rows."
    ONE_FOR_ALL = "Every column gets the {name} of column 0: a pointer without a block loads one number."


def mistakes(
    evidence: Compared, inputs: Sequence[Argument], weight: int | None = None, bias: int | None = None
) -> Iterator[Hypothesis]:
    """Yields these mistakes for the arguments at the places of the weight and of the bias."""
    z, names = evidence.returns, evidence.exercise.arguments
    tensors = {place: as_tensor(inputs[place]) for place in (weight, bias) if place is not None}
    ones, zeros = ({place: one * 0 + number for place, one in tensors.items()} for number in (1.0, 0.0))
    if bias is not None:
        said = ColumnVectors.NO_BIAS(result=z, bias=names[bias])
        yield from with_others(evidence, "no-bias", said, inputs, {bias: zeros[bias]})
    if weight is not None:
        said = ColumnVectors.NO_WEIGHT(result=z, weight=names[weight])
        yield from with_others(evidence, "no-weight", said, inputs, {weight: ones[weight]})
    if weight is not None and bias is not None:
        said = ColumnVectors.NEITHER_USED(weight=names[weight], bias=names[bias])
        yield from with_others(evidence, "no-weight", said, inputs, {weight: ones[weight], bias: zeros[bias]})
    yield from _by_row(evidence, inputs, tensors)
    for place, one in tensors.items():
        said = ColumnVectors.ONE_FOR_ALL(name=names[place])
        yield from with_others(evidence, "one-weight", said, inputs, {place: one[:1].expand_as(one)})


def _by_row(evidence: Compared, inputs: Sequence[Argument], tensors: dict[int, torch.Tensor]) -> Iterator[Hypothesis]:
    """Yields vectors taken by the row's number, together and one alone; lanes past a vector's end are masked, and 0."""
    M, N = evidence.comparison.out.shape[0], evidence.comparison.out.shape[-1]
    if evidence.comparison.out.dim() != 2 or M < 2:
        return
    padded = {place: torch.nn.functional.pad(one, (0, max(0, M - N)))[:M, None] for place, one in tensors.items()}
    along = {place: one.expand(M, N) for place, one in padded.items()}
    together = [along] if len(along) > 1 else []
    for changed in (*together, *({place: one} for place, one in along.items())):
        named = " and ".join(evidence.exercise.arguments[place] for place in changed)
        said = ColumnVectors.BY_ROW(vectors=f"{named} {'are' if len(changed) > 1 else 'is'}")
        yield from with_others(evidence, "vector-by-row", said, inputs, changed)
