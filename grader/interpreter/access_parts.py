"""The parts of an access: its lanes that go through one parameter, and where in the parameter's buffer they lead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grader.interpreter.access_log import Lanes
from grader.interpreter.buffers import Argument
from grader.interpreter.shadow import Units
from grader.interpreter.views import BufferView
from grader.ttir.module import Operation, SourcePlace


@dataclass
class Access:
    """A load, store or atomic under way."""

    kind: str
    item: int  # bytes of an element
    operation: Operation
    turn: int  # its number in the launch
    lanes: Lanes | None

    @property
    def place(self) -> SourcePlace:
        return self.operation.place


@dataclass(eq=False)
class Part:
    """The lanes of an access that go through one parameter, without the lanes that are out of bounds."""

    argument: Argument
    pointers: np.ndarray
    programs: np.ndarray
    base: int  # the parameter's pointer to its buffer's first byte
    index: Units  # of the elements, in the buffer's words of this size
    distinct: bool  # no element comes twice
    chosen: np.ndarray | None  # numbers of these lanes in the access; None: all

    @cached_property
    def offsets(self) -> np.ndarray:
        return self.pointers - self.base


def outside(
    view: BufferView, pointers: np.ndarray, base: int, low: int, high: int, increasing: bool, item: int
) -> np.ndarray | None:
    """Returns by lane whether a pointer leads to no element of the view; None: all lead to elements.

    base: the pointer to the buffer's first byte. low, high: the lowest and the highest byte offset of the pointers.
    """
    if low < view.low or high + item > view.high:
        bad = (pointers < base + view.low) | (pointers > base + view.high - item)
        holes = view.in_holes(pointers[~bad] - base)
        if holes is not None:
            bad[~bad] = holes
        return bad
    dense = increasing and high - low == item * (pointers.size - 1)
    if not view.has_holes or (dense and view.is_solid(low, high)):
        return None
    holes = view.in_holes(pointers - base)
    return holes if holes is not None and holes.any() else None


def units_of(index: Units, owners: np.ndarray, each: int) -> tuple[Units, np.ndarray, int]:
    """Returns the units of elements that are `each` units long, the owner of each unit, and `each`."""
    if each == 1:
        return index, owners, 1
    owners = np.repeat(owners, each)
    if isinstance(index, slice):
        return slice(index.start * each, index.stop * each), owners, each
    return (index[:, None] * each + np.arange(each)).reshape(-1), owners, each


def in_rounds(index: np.ndarray, distinct: bool) -> Iterable[np.ndarray | slice]:
    """Returns the lanes in rounds: no round has an element twice, and each element meets its lanes in their order."""
    if distinct or index.size < 2:
        return [slice(None)]
    order = np.argsort(index, kind="stable")
    starts = np.flatnonzero(np.append(True, index[order][1:] != index[order][:-1]))
    lengths = np.diff(starts, append=index.size)
    rank = np.arange(index.size) - np.repeat(starts, lengths)
    by_rank = order[np.argsort(rank, kind="stable")]
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])


def conflicts(part: Part, values: np.ndarray) -> np.ndarray:
    """Returns by lane of a store whether a later lane of its program has overwritten its value with another value."""
    order = np.lexsort((part.pointers, part.programs))  # stable: the last of equal lanes stays the last
    pointers, programs = part.pointers[order], part.programs[order]
    last = np.append((pointers[1:] != pointers[:-1]) | (programs[1:] != programs[:-1]), True)
    stays = order[last][np.cumsum(last) - last]
    lost = np.zeros(values.size, bool)
    lost[order] = values[order] != values[stays]
    return lost
