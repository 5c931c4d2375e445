"""A value may be used only where its definition has been passed on every way."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from grader.ttir.module import BadText, Block

MOST_BLOCKS = 2048  # of one region
_MOST_ROUNDS = 16  # Triton's own blocks lead forward only and take one


def check_dominance(blocks: Sequence[Block], starts: Sequence[int]) -> None:
    """starts: per block the number of its first value; values of a block have numbers in a row."""
    if len(blocks) > MOST_BLOCKS:
        raise BadText(f"more than {MOST_BLOCKS} blocks in a region")
    above = _dominators(blocks)
    for number, block in enumerate(blocks):
        for outer in block.operations:
            for operation in outer.walk():
                for value in operation.operands:
                    if value >= starts[0]:
                        home = bisect_right(starts, value) - 1
                        if not above[number] >> home & 1:
                            raise BadText(f"{operation.name} uses a value that may not be defined when it runs")


def _dominators(blocks: Sequence[Block]) -> list[int]:
    """Per block the set of blocks, as bits, that every way to it passes through; all of them where none leads to it."""
    everything = (1 << len(blocks)) - 1
    above = [1] + [everything] * (len(blocks) - 1)
    before: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for successor in block.operations[-1].successors:
            before[successor.block].append(number)
    for _ in range(_MOST_ROUNDS):
        changed = False
        for number in range(1, len(blocks)):
            common = everything
            for source in before[number]:
                common &= above[source]
            common |= 1 << number
            if common != above[number]:
                above[number], changed = common, True
        if not changed:
            return above
    raise BadText("blocks that lead back and forth too often")
