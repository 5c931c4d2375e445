"""The mistake of adding up in fp16 or bf16: what these dtypes do not hold is lost from a sum on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from grader.operations.hypothesis import Hypothesis
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = ("half-accumulator",)
DIGITS = ("half-accumulator",)
LARGEST_IN_FP16 = 65504.0
ALL_WHOLE_IN_FP16 = 2048  # fp16 holds every whole number up to this


class HalfPrecision(Sentence):
    """Sentences about sums that are kept in 16 bits."""

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
