"""The mistake of taking another head of k and v than that of the group: several heads of q share one of k and v."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.operations.hypothesis import Hypothesis, listed, with_others
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence

CAUSES = ("wrong-head",)
K_AND_V = (1, 2)  # places of arguments


class Groups(Sentence):
    """Sentences about the head of {names} that head h of q goes to."""

    HEAD_ZERO = (
        "Every head of q goes to head 0 of {names}, which have {shared:#head}: head h goes to h // {group}, as there "
        "are {group:#head} of q to one."
    )
    IN_TURN = (
        "Head h of q goes to head h % {shared} of {names}. Heads of a group stand side by side: it goes to h // "
        "{group}, as there are {group:#head} of q to one."
    )
    BY_NUMBER = (
        "Head h of q goes to head h // {shared} of {names}: it goes to h // {group}, as there are {group:#head} of q "
        "to one."
    )


def mistakes(evidence: Evidence, inputs: Sequence[Argument], axis: int) -> Iterator[Hypothesis]:
    """Yields heads of q that meet other heads of k and v, whose heads lie along `axis`."""
    q, *k_and_v = as_tensors(inputs[:3])
    H, shared = q.shape[1], k_and_v[0].shape[axis]
    h, group = torch.arange(H), H // shared
    for sentence, heads in ((Groups.HEAD_ZERO, h * 0), (Groups.IN_TURN, h % shared), (Groups.BY_NUMBER, h // shared)):
        if int(heads.max()) < shared and not torch.equal(heads, h // group):
            said = sentence(names=listed(evidence, K_AND_V), shared=shared, group=group)
            others = {place: one.index_select(axis, heads) for place, one in zip(K_AND_V, k_and_v)}
            yield from with_others(evidence, "wrong-head", said, inputs, others)
