"""The mistake of using one operand twice, or alone, where the operation takes two: its id is one of any operation's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor
from grader.operations.hypothesis import Hypothesis, with_others
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared


class Operands(Sentence):
    """Sentences about operands that are used twice, or not at all."""

    USED_TWICE = "{name} is made from {used} twice: {left_out} is not used."
    ONE_ALONE = "{name} is made from {used} alone: {left_out} is not used."


def used_twice(evidence: Compared, inputs: Sequence[Argument], used: int, left_out: int) -> Iterator[Hypothesis]:
    """Yields the argument at one place used in the place of another too."""
    names = evidence.exercise.arguments
    said = Operands.USED_TWICE(name=evidence.returns, used=names[used], left_out=names[left_out])
    yield from with_others(evidence, "wrong-operand", said, inputs, {left_out: as_tensor(inputs[used])})


def without_summand(evidence: Compared, inputs: Sequence[Argument], one: int, other: int) -> Iterator[Hypothesis]:
    """Yields each of two arguments that are added used alone."""
    names = evidence.exercise.arguments
    for used, left_out in ((one, other), (other, one)):
        nothing = torch.zeros_like(as_tensor(inputs[left_out]))
        said = Operands.ONE_ALONE(name=evidence.returns, used=names[used], left_out=names[left_out])
        yield from with_others(evidence, "wrong-operand", said, inputs, {left_out: nothing})
