"""Mistakes in strides: tensors are read with other strides than their own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, exact
from grader.operations.hypothesis import Hypothesis, listed, reread, with_others
from grader.sentences import Said, Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence

CAUSES = ("head-across-batches",)
Stride = tuple[int, ...]


class Strides(Sentence):
    """Sentences about tensors, {names}, that are read with other strides than their own."""

    OF_ANOTHER = "The strides of {other} are used for {names}: each tensor has its own."
    AS_CONTIGUOUS = "The strides of {names} are not used: they are read as if contiguous."
    LAST_IGNORED = "The last stride of {names} is not used: the elements of a row lie apart."
    ACROSS_BATCHES = (
        "In {names} the heads of all batches are taken to lie in a row: program_id(1) times the stride of heads is "
        "right only where a batch begins right behind the last head of the batch before it. Take batch and head apart."
    )


def misread(
    evidence: Evidence, inputs: Sequence[Argument], id: str, said: Said, strides: Mapping[int, Stride]
) -> Iterator[Hypothesis]:
    """Yields the mistake of reading the arguments at these places with these strides, together; nothing where the
    strides are right, or lead out of memory."""
    memory = {place: as_tensor(evidence.inputs[place]) for place in strides}
    found = {place: one for place, given in memory.items() if (one := reread(given, strides[place])) is not None}
    if len(found) == len(memory) and any(given.stride() != strides[place] for place, given in memory.items()):
        others = dict(zip(found, map(as_tensor, exact(found.values()))))
        yield from with_others(evidence, id, said, inputs, others)


def of_another(evidence: Evidence, inputs: Sequence[Argument], place: int, other: int) -> Iterator[Hypothesis]:
    """Yields the argument at one place read with the strides of another argument."""
    names = evidence.exercise.arguments
    said = Strides.OF_ANOTHER(names=names[place], other=names[other])
    strides = as_tensor(evidence.inputs[other]).stride()
    yield from misread(evidence, inputs, "stride-ignored", said, {place: strides})


def as_contiguous(evidence: Evidence, inputs: Sequence[Argument], places: Sequence[int]) -> Iterator[Hypothesis]:
    """Yields the arguments at these places read as if they were contiguous."""
    said = Strides.AS_CONTIGUOUS(names=listed(evidence, places))
    tight = {place: contiguous(as_tensor(inputs[place])) for place in places}
    yield from misread(evidence, inputs, "stride-ignored", said, tight)


def contiguous(tensor: torch.Tensor) -> Stride:
    """Returns the strides that the tensor would have if it were contiguous."""
    return tuple(math.prod(tensor.shape[axis + 1 :]) for axis in range(tensor.dim()))


def of_heads(evidence: Evidence, inputs: Sequence[Argument], places: Sequence[int]) -> Iterator[Hypothesis]:
    """Yields wrong readings of tensors with batches, heads, rows and columns: heads counted across batches, the last
    stride left out, all strides, or the first of them, those of another argument."""
    own = {place: as_tensor(evidence.inputs[place]).stride() for place in places}
    names = listed(evidence, places)
    across = {place: (as_tensor(inputs[place]).shape[1] * of[1], *of[1:]) for place, of in own.items()}
    yield from misread(evidence, inputs, "head-across-batches", Strides.ACROSS_BATCHES(names=names), across)
    last = {place: (*of[:3], 1) for place, of in own.items()}
    yield from misread(evidence, inputs, "stride-ignored", Strides.LAST_IGNORED(names=names), last)
    for other, given in enumerate(evidence.inputs):
        if other in places or not isinstance(given, torch.Tensor) or given.dim() != 4:
            continue
        said, theirs = Strides.OF_ANOTHER(names=names, other=evidence.exercise.arguments[other]), given.stride()
        for taken in (slice(0, 4), slice(0, 2), slice(1, 2)):
            mixed = {place: (*of[: taken.start], *theirs[taken], *of[taken.stop :]) for place, of in own.items()}
            yield from misread(evidence, inputs, "stride-ignored", said, mixed)
