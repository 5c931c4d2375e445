"""The mistake of adding up in fp16 or bf16: what these dtypes do not hold is lost from a sum on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

import torch

from grader.numerics.data_sets import short_name
from grader.operations.hypothesis import Hypothesis
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

CAUSES = ("half-accumulator",)
LARGEST_IN_FP16 = 65504.0
ALL_WHOLE_IN_FP16 = 2048  # fp16 holds every whole number up to this
TELLING = 8  # elements: fewer may fit rounded numbers by chance


class HalfPrecision(Sentence):
    """Sentences about sums that are kept in 16 bits."""

    IN_EVERY_TURN = (
        "{name} is rounded to {dtype} in every turn: large sums lose their last digits there, and the difference of "
        "two of them is wrong. Keep the sum in fp32 until the store."
    )
    ABOVE_2048 = (
        "Exact sums of whole numbers go wrong above 2048: they are kept in fp16, which holds only even numbers there. "
        "Keep them in fp32."
    )


def above_2048(evidence: Compared, terms: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields the mistake where `terms`, added up along the last axis, are whole numbers that pass 2048 and exact calls
    were right before. `terms` is [sums, terms of each]."""
    is_whole = torch.equal(terms, terms.round())
    if is_whole and "exact" in evidence.right_before and bool(terms.cumsum(dim=-1).abs().max() > ALL_WHOLE_IN_FP16):
        yield Hypothesis("half-accumulator", HalfPrecision.ABOVE_2048(), None)


def rounded(numbers: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns the numbers, of float64, as a kernel that computes in fp32 has them after their conversion to `dtype`."""
    return numbers.float().to(dtype).double()


def short(dtype: torch.dtype) -> str:
    """Returns "fp16" or "bf16"."""
    return short_name(str(dtype).removeprefix("torch."))


def added_up(
    terms: Iterable[torch.Tensor], dtype: torch.dtype, factors: Iterable[torch.Tensor] | None = None
) -> torch.Tensor:
    """Returns the sum of terms of one shape, rounded after each addition; a factor multiplies what was added up before
    its term."""
    found, none = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    for term, factor in zip(terms, repeat(none) if factors is None else factors):
        found = rounded(found * factor + term, dtype)
    return found


def decided(evidence: Compared, found: Hypothesis, result: torch.Tensor) -> Hypothesis:
    """Returns the mistake without its result if `result` is much nearer to the output than the reference is, at nearly
    all wrong elements, of which there have to be TELLING at least.

    Nearly all are enough: a number between two neighbours in fp16 may have been rounded to the other neighbour.
    """
    comparison, out = evidence.comparison, evidence.comparison.out.double()
    nearer = (out - result).abs() < 0.3 * (out - comparison.ref).abs()
    sure = comparison.wrong_count >= TELLING and float(nearer[comparison.wrong].double().mean()) > 0.9
    return replace(found, result=None) if sure else found
