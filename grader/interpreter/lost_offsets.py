"""Lanes whose offset did not fit its type, followed from the operation that lost it to the access that uses it.

A masked lane may have any offset, so a number that wraps around on the way to an address is no mistake by itself. It
matters where an active lane loads or stores with it. Lanes are followed from the first loss on; a launch without a loss
only looks at an empty table.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from grader.interpreter.dtypes import over
from grader.ttir.module import Operation, SourcePlace

Origin = tuple[str, SourcePlace]  # of a loss: the type that does not hold a number, and the operation
Lanes = dict[Origin, np.ndarray]  # bools, in the shape of an array of values
# Operations that move elements and compute nothing: the same function moves values and bools.
MOVES = ("tt.splat", "tt.unsplat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.join", "tt.split",
         "tt.cat")  # fmt: skip


class Lost:
    """The lanes of live arrays that are computed from a lost number."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[weakref.ref, Lanes]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, value: Any) -> Lanes:
        """Returns the lost lanes of an array; for a descriptor or a block pointer a lane for each program."""
        if isinstance(value, np.ndarray):
            return self._of[id(value)][1] if id(value) in self._of else {}
        lanes: Lanes = {}
        for part in arrays_of(value):
            for origin, bad in self.of(part).items():
                lanes[origin] = lanes.get(origin, np.zeros(1, bool)) | bad.reshape(len(bad), -1).any(axis=1)
        return lanes

    def note(self, value: np.ndarray, origin: Origin, bad: np.ndarray) -> None:
        """Adds lost lanes of an array. They are forgotten with the array, as another array may then get its id."""
        if not bad.any():
            return
        key = id(value)
        if key not in self._of:
            self._of[key] = weakref.ref(value, lambda _: self._of.pop(key, None)), {}
        lanes = self._of[key][1]
        lanes[origin] = lanes[origin] | bad if origin in lanes else bad

    def merge(self, out: Any, mask: np.ndarray, new: Any, old: Any) -> None:
        """Notes the lost lanes of `out`, which holds `new` for the programs of the mask, and `old` for the others."""
        if isinstance(out, np.ndarray):
            for origin, (ours, theirs) in _by_origin((self.of(new), self.of(old)), (new, old)):
                self.note(out, origin, np.where(over(mask, out.ndim - 1), ours, theirs))


def arrays_of(value: Any) -> Sequence[np.ndarray]:
    """Returns the arrays that a value consists of."""
    return (value,) if isinstance(value, np.ndarray) else value.arrays


def hand_on(lost: Lost, operation: Operation, run: Callable, operands: Sequence[Any], out: Any) -> None:
    """Notes the lanes of a result that are computed from lost lanes.

    run: the function that carried the operation out.
    """
    for origin, bad in _by_origin([lost.of(operand) for operand in operands], operands):
        if operation.name in MOVES:
            moved = run(*bad)
            pairs = zip(out, moved) if isinstance(out, tuple) else [(out, moved)]
        elif operation.name == "arith.select":
            pairs = [(out, bad[0] | np.where(operands[0], *bad[1:]))]
        else:
            known = {id(part) for operand in operands for part in arrays_of(operand)}
            pairs = [(part, _in_any(bad, part.shape)) for part in arrays_of(out) if id(part) not in known]
        for value, lanes in pairs:
            lost.note(value, origin, lanes)


def _by_origin(lanes: Sequence[Lanes], values: Sequence[Any]) -> Iterator[tuple[Origin, list[np.ndarray]]]:
    """Yields for each loss the lanes that each of the values has of it."""
    for origin in {origin: None for lost in lanes for origin in lost}:
        yield origin, [lost.get(origin, _none(value)) for lost, value in zip(lanes, values)]


def _none(value: Any) -> np.ndarray:
    return np.zeros(value.shape if isinstance(value, np.ndarray) else 1, bool)


def _in_any(several: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the lanes that any of these arrays has, in an array of this shape.

    Whole programs count where lanes do not correspond.
    """
    out = np.zeros((1,) * len(shape), bool)
    for bad in several:
        fits = bad.ndim == len(shape) and all(size in (1, own) for size, own in zip(bad.shape, shape))
        out = out | (bad if fits else over(np.logical_or.reduce(bad.reshape(len(bad), -1), axis=1), len(shape) - 1))
    return out
