"""Who prepares which operation.

A maker gets an operation and returns what computes it from arrays: as much as can be is decided once per kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.ttir.module import Operation

Computed = Callable[..., Any]  # arrays, one per operand -> an array, or a tuple of several results
Maker = Callable[[Operation], Computed]
Region = Callable[[list], list]  # arrays, one per argument of a region's block -> what its terminator hands on
FoldMaker = Callable[[Operation, Region], Computed]

MAKERS: dict[str, Maker] = {}
FOLDS: dict[str, FoldMaker] = {}
APPROXIMATE: set[str] = set()  # whose float32 results a GPU rounds otherwise than IEEE's nearest


def prepares(*names: str, approximate: bool = False) -> Callable[[Maker], Maker]:
    """Registers the maker of these operations."""

    def register(maker: Maker) -> Maker:
        for name in names:
            MAKERS[name] = maker
            if approximate:
                APPROXIMATE.add(name)
        return maker

    return register


def prepares_fold(name: str) -> Callable[[FoldMaker], FoldMaker]:
    """The same for an operation that carries a region, which somebody else evaluates."""

    def register(maker: FoldMaker) -> FoldMaker:
        FOLDS[name] = maker
        return maker

    return register
