"""Operations made by hand, without a compiler's text, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grader.interpreter.known_operations import entry_of
from grader.ttir.module import Block, Operation, Type


def kind(text: str) -> Type:
    """`4x8xf32`: a tensor; `f32`: a number."""
    *shape, element = text.split("x")
    return Type(element, tuple(int(size) for size in shape))


def operation(name: str, operands: str, results: str, regions=(), **attributes: Any) -> Operation:
    """Types with blanks between, as MLIR writes them; `tt.dot`, `"8x8xf16 8x8xf16 8x8xf32"`, `"8x8xf32"`."""
    ins, outs = tuple(map(kind, operands.split())), tuple(map(kind, results.split()))
    first = len(ins)
    return Operation(
        name, tuple(range(first)), tuple(range(first, first + len(outs))), ins, outs, attributes, tuple(regions)
    )


def prepare(op: Operation, *more: Any) -> Callable[..., Any]:
    """The function that carries the operation out; `more`: what its maker gets besides, such as how to run a region."""
    return entry_of(op.name).make(op, *more)


def compute(name: str, operands: str, results: str, *values: Any, **attributes: Any) -> Any:
    with np.errstate(all="ignore"):
        return prepare(operation(name, operands, results, **attributes))(*values)


def combining(name: str, element: str, swapped: bool = False) -> tuple[Block, ...]:
    """A region that combines its two arguments by one operation."""
    one = kind(element)
    inside = Operation(name, (1, 0) if swapped else (0, 1), (2,), (one, one), (one,))
    return (Block((0, 1), (one, one), (inside, Operation("tt.reduce.return", (2,), (), (one,)))),)
