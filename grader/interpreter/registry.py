"""The makers of operations, by name.

A maker gets an operation and returns the function that computes it from arrays. It decides as much as it can once per
kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.ttir.module import Operation

Computed = Callable[..., Any]  # arrays, one per operand -> an array, or a tuple of several results
Maker = Callable[[Operation], Computed]
Region = Callable[[list], list]  # arrays, one per argument of a region's block -> its terminator's operands
FoldMaker = Callable[[Operation, Region], Computed]

MAKERS: dict[str, Maker] = {}
FOLD_MAKERS: dict[str, FoldMaker] = {}  # operations with a region that is evaluated lane by lane
APPROXIMATE: set[str] = set()  # operations whose float32 results on a GPU are not IEEE's nearest


def prepares(*names: str, approximate: bool = False) -> Callable[[Maker], Maker]:
    """Returns a decorator that registers the maker of these operations. `approximate`: see APPROXIMATE."""

    def register(maker: Maker) -> Maker:
        for name in names:
            MAKERS[name] = maker
            if approximate:
                APPROXIMATE.add(name)
        return maker

    return register


def prepares_fold(name: str) -> Callable[[FoldMaker], FoldMaker]:
    """Returns a decorator that registers the maker of an operation with a region, which the caller evaluates."""

    def register(maker: FoldMaker) -> FoldMaker:
        FOLD_MAKERS[name] = maker
        return maker

    return register
