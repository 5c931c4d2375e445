"""Who prepares which operation.

A maker gets an operation and returns what computes it from arrays: as much as can be is decided once per kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.interpreter.dtypes import Unsupported
from grader.ttir.module import Operation

Computed = Callable[..., Any]  # arrays, one per operand -> an array, or a tuple of several results
Maker = Callable[[Operation], Computed]
Region = Callable[[list], list]  # arrays, one per argument of a region's block -> what its terminator hands on
FoldMaker = Callable[[Operation, Region], Computed]

MAKERS: dict[str, Maker] = {}
FOLDS: dict[str, FoldMaker] = {}
APPROXIMATE: set[str] = set()  # whose float32 results a GPU rounds otherwise than IEEE's nearest
_ATTRIBUTES: dict[str, frozenset[str]] = {}

# What the front end lets a programmer promise of any value; checked elsewhere, without a meaning for the value.
HINTS = frozenset({"tt.divisibility", "tt.contiguity", "tt.constancy"})


def prepares(*names: str, attributes: str = "", approximate: bool = False) -> Callable[[Maker], Maker]:
    """Registers the maker of these operations; `attributes`: all that it understands, with blanks between."""

    def register(maker: Maker) -> Maker:
        for name in names:
            MAKERS[name] = maker
            _ATTRIBUTES[name] = frozenset(attributes.split())
            if approximate:
                APPROXIMATE.add(name)
        return maker

    return register


def prepares_fold(name: str, attributes: str = "") -> Callable[[FoldMaker], FoldMaker]:
    """The same for an operation that carries a region, which somebody else evaluates."""

    def register(maker: FoldMaker) -> FoldMaker:
        FOLDS[name] = maker
        _ATTRIBUTES[name] = frozenset(attributes.split())
        return maker

    return register


def check_attributes(op: Operation) -> None:
    """Fails where the text says something of an operation that its maker does not understand."""
    for name in op.attributes:
        if name not in _ATTRIBUTES[op.name] and name not in HINTS:
            raise Unsupported(f"attribute {name} of operation {op.name} is not known here yet")


def at_least(op: Operation, operands: int, results: int = 1) -> None:
    """Fails where the text gives an operation fewer operands or results than its maker will look at."""
    if len(op.operand_types) < operands or len(op.result_types) < results:
        raise Unsupported(f"operation {op.name} with {len(op.operand_types)} operands is not known here")
