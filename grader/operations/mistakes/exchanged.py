"""The mistake of storing two results in each other's places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import torch

from grader.operations.hypothesis import Hypothesis
from grader.sentences import Sentence

CAUSES = ("results-exchanged",)


class Exchanged(Sentence):
    """Sentences about results that stand in the places of others."""

    RESULTS_EXCHANGED = "{one} and {other} are exchanged: each holds what belongs into the other."


def mistakes(right: Sequence[torch.Tensor], names: Sequence[str]) -> Iterator[Hypothesis]:
    """Yields each two of the right results exchanged that have one shape."""
    for one, other in combinations(range(len(right)), 2):
        if right[one].shape == right[other].shape:
            results = list(right)
            results[one], results[other] = right[other], right[one]
            said = Exchanged.RESULTS_EXCHANGED(one=names[one], other=names[other])
            yield Hypothesis("results-exchanged", said, tuple(results))
