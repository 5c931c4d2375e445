"""Attention, third file: mistakes that read other batches, heads or elements than the program's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor
from grader.operations._attention import Attention
from grader.operations.hypothesis import Hypothesis, reread, supposed
from grader.sentences import Said

if TYPE_CHECKING:
    from grader.operations.evidence import Evidence

TENSORS = (0,), (1,), (2,), (1, 2), (0, 1, 2)  # places of the arguments that are misread together
Strides = Callable[[torch.Tensor], tuple[int, ...]]  # of a tensor, the strides that it is read with


def of_other_elements(
    evidence: Evidence, inputs: Sequence[Argument], tensors: Sequence[tuple[int, ...]] = TENSORS
) -> Iterator[Hypothesis]:
    """Yields arguments read from a wrong batch, head or element; `tensors` holds the places of arguments that are
    misread together."""
    names = evidence.exercise.arguments
    for places in tensors:
        asked = [names[place] for place in places]
        named = " and ".join(filter(None, (", ".join(asked[:-1]), asked[-1])))
        given = {place: as_tensor(inputs[place]) for place in places}
        for id, sentence, first in (
            ("batch-zero", Attention.BATCH_ZERO, _batch_zero), ("head-zero", Attention.HEAD_ZERO, _head_zero),
        ):  # fmt: skip
            found = {place: first(one).expand_as(one) for place, one in given.items()}
            yield from supposed(evidence, id, sentence(names=named), _with_others(inputs, found))
        memory = {place: as_tensor(evidence.inputs[place]) for place in places}
        for id, said, strides in _readings(evidence, places, named):
            misread = {at: new for at, one in memory.items() if (new := reread(one, strides(one))) is not None}
            if len(misread) == len(places):
                found = {place: one.double() for place, one in misread.items()}
                yield from supposed(evidence, id, said, _with_others(inputs, found))


def _with_others(inputs: Sequence[Argument], others: Mapping[int, torch.Tensor]) -> list[Argument]:
    """Returns the arguments, with some of them exchanged for others, by their places."""
    return [others.get(place, one) for place, one in enumerate(inputs)]


def _batch_zero(one: torch.Tensor) -> torch.Tensor:
    return one[:1]


def _head_zero(one: torch.Tensor) -> torch.Tensor:
    return one[:, :1]


def _readings(evidence: Evidence, places: Sequence[int], named: str) -> Iterator[tuple[str, Said, Strides]]:
    """Yields id, sentence and strides of wrong readings; the strides are made from the tensor's or another argument's
    strides."""

    def across(one: torch.Tensor) -> tuple[int, ...]:
        return (one.shape[1] * one.stride(1), *one.stride()[1:])

    yield "head-across-batches", Attention.ACROSS_BATCHES(names=named), across
    yield "stride-ignored", Attention.LAST_STRIDE(names=named), lambda one: (*one.stride()[:3], 1)
    for other, given in enumerate(evidence.inputs):
        if other not in places and isinstance(given, torch.Tensor) and given.dim() == 4:
            said = Attention.STRIDES_OF_ANOTHER(names=named, other=evidence.exercise.arguments[other])
            yield "strides-of-another", said, _of(given)
            yield "strides-of-another", said, _across_heads_of(given)
            yield "strides-of-another", said, _with_heads_of(given)


def _of(other: torch.Tensor) -> Strides:
    return lambda one: other.stride()


def _across_heads_of(other: torch.Tensor) -> Strides:
    return lambda one: (*other.stride()[:2], *one.stride()[2:])


def _with_heads_of(other: torch.Tensor) -> Strides:
    return lambda one: (one.stride(0), other.stride(1), *one.stride()[2:])
