"""Rows of a table by their numbers: table [M, N], index [K] -> z [K, N]. A copy: nothing is rounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.operations.hypothesis import Hypothesis

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence

CAUSES = ("index-ignored", "first-index", "row-zero", "neighbouring-row", "neighbouring-index")


def mistakes(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 2:
        return
    (table, index), z = inputs, evidence.returns
    named_table, named_index = evidence.exercise.arguments
    (M, N), K = table.shape, len(index)
    if K <= M:
        sentence = (
            f"Row k of {z} holds row k of {named_table}: {named_index} is not used. Load {named_index}[k] first, and "
            "take that row."
        )
        yield Hypothesis("index-ignored", sentence, table[:K])
    if K > 1 and int(index[0]):
        sentence = (
            f"Every row of {z} is the row that {named_index}[0] names: the load from {named_index} does not move with "
            "the program."
        )
        yield Hypothesis("first-index", sentence, table[index[:1]].expand(K, N))
    cause = f"the row that {named_index} names is not in the pointers."
    if int(index[:1].sum()) == 0:
        cause = f"does the load from {named_index} move with the program, and is its row in the pointers?"
    sentence = f"Every row of {z} is row 0 of {named_table}: {cause}"
    yield Hypothesis("row-zero", sentence, table[:1].expand(K, N))
    for step, which in ((1, "after"), (-1, "before")):
        sentence = f"Each row of {z} is the one {which} the row that {named_index} names."
        yield Hypothesis("neighbouring-row", sentence, table[(index + step).clamp(0, M - 1)])
        yield Hypothesis("neighbouring-row", sentence, table[(index + step) % M])
    for step, place in ((-1, "k + 1"), (1, "k - 1")):
        sentence = f"Row k of {z} is the row that {named_index}[{place}] names."
        yield Hypothesis("neighbouring-index", sentence, table[index.roll(step)])
    block = evidence.constants.get("BLOCK_N", 0)
    if 0 < block < N:
        sentence = f"Each block of {z} holds the first columns of its row: the load does not move with the program."
        yield Hypothesis("local-load", sentence, table[index][:, torch.arange(N) % block])
