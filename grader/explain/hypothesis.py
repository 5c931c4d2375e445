"""A mistake that a kernel may have made, and what a kernel with this mistake computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.sentences import Said

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence


Result = torch.Tensor | tuple[torch.Tensor, ...]  # float64 or int64: the result that is looked at, or all results


@dataclass
class Hypothesis:
    id: str
    sentence: Said
    result: Result | None  # None: other evidence has decided already
    # How much arithmetic may add on top of the bound, [result's shape], as the terms are not those of the right result.
    rounding: torch.Tensor | None = None
    line_of: Callable[[], int] = int  # finds the line of the text that shows this mistake; 0: none does
    of_special: bool = False  # about NaN and infinities alone: no ordinary number has to show it
    may_be_constant: bool = False  # NaN everywhere fits many formulas: True only if other evidence supports this
    loses: str = ""  # "digits" or "range", as grader/course/mistakes.py has them
    # Asked of one that fits: whether it leaves right what the submission has right.
    holds: Callable[[], bool] = lambda: True

    @property
    def candidate(self) -> str:
        """The id of the sentence: one for several hypotheses that differ in numbers."""
        return self.sentence.sentence.id


def supposed(evidence: Evidence, id: str, sentence: Said, arguments: Sequence[Argument]) -> Iterator[Hypothesis]:
    """Yields the mistake of computing with these arguments; nothing if the reference has no result for them."""
    result = evidence.reference(arguments)
    if result is not None:
        bound = evidence.wanted.bound
        rounding = None if isinstance(bound, str) else bound.arithmetic(result, *arguments)
        yield Hypothesis(id, sentence, result, rounding)


def reread(tensor: torch.Tensor, strides: tuple[int, ...], further: int = 0) -> torch.Tensor | None:
    """Returns the same memory under other strides, `further` elements on, or None where that would leave the memory."""
    first = tensor.storage_offset() + further
    last = first + sum((size - 1) * stride for size, stride in zip(tensor.shape, strides))
    if (last + 1) * tensor.element_size() > tensor.untyped_storage().nbytes():
        return None
    return tensor.as_strided(tensor.shape, strides, first)
