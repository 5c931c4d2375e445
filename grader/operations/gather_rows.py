"""Rows of a table by their numbers: table [M, N], index [K] -> z [K, N]. A copy: nothing is rounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.operations.hypothesis import Hypothesis
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = ("index-ignored", "first-index", "neighbouring-row", "neighbouring-index")


class GatherRows(Sentence):
    """Sentences about what is copied instead of the rows that the index names."""

    INDEX_IGNORED = (
        "Row k of {name} holds row k of {table}: {index} is not used. Load {index}[k] first, and take that row."
    )
    FIRST_INDEX = (
        "Every row of {name} is the row that {index}[0] names: the load from {index} does not move with the program."
    )
    ROW_ZERO = "Every row of {name} is row 0 of {table}: the row that {index} names is not in the pointers."
    ROW_ZERO_OR_FIRST_INDEX = (
        "Every row of {name} is row 0 of {table}: does the load from {index} move with the program, and is its row in "
        "the pointers?"
    )
    ROW_AFTER = "Each row of {name} is the one after the row that {index} names."
    ROW_BEFORE = "Each row of {name} is the one before the row that {index} names."
    INDEX_AFTER = "Row k of {name} is the row that {index}[k + 1] names."
    INDEX_BEFORE = "Row k of {name} is the row that {index}[k - 1] names."
    LOCAL_LOAD = "Each block of {name} holds the first columns of its row: the load does not move with the program."


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 2:
        return
    (table, index), z = as_tensors(inputs), evidence.returns
    named_table, named_index = evidence.exercise.arguments
    (M, N), K = table.shape, len(index)
    if K <= M:
        sentence = GatherRows.INDEX_IGNORED(name=z, table=named_table, index=named_index)
        yield Hypothesis("index-ignored", sentence, table[:K])
    if K > 1 and int(index[0]):
        sentence = GatherRows.FIRST_INDEX(name=z, index=named_index)
        yield Hypothesis("first-index", sentence, table[index[:1]].expand(K, N))
    row_zero = GatherRows.ROW_ZERO if int(index[:1].sum()) else GatherRows.ROW_ZERO_OR_FIRST_INDEX
    sentence = row_zero(name=z, table=named_table, index=named_index)
    yield Hypothesis("row-zero", sentence, table[:1].expand(K, N))
    for step, neighbour in ((1, GatherRows.ROW_AFTER), (-1, GatherRows.ROW_BEFORE)):
        sentence = neighbour(name=z, index=named_index)
        yield Hypothesis("neighbouring-row", sentence, table[(index + step).clamp(0, M - 1)])
        yield Hypothesis("neighbouring-row", sentence, table[(index + step) % M])
    for step, neighbour in ((-1, GatherRows.INDEX_AFTER), (1, GatherRows.INDEX_BEFORE)):
        yield Hypothesis("neighbouring-index", neighbour(name=z, index=named_index), table[index.roll(step)])
    block = evidence.constants.get("BLOCK_N", 0)
    if 0 < block < N:
        yield Hypothesis("local-load", GatherRows.LOCAL_LOAD(name=z), table[index][:, torch.arange(N) % block])
