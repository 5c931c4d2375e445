"""Strided views: where a tensor's elements lie in its buffer, and the bytes between them that belong to others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

MOST_HOLE_ELEMENTS = 1 << 26  # of the largest view with a table of holes; the holes of larger views follow from strides


@dataclass(frozen=True)
class BufferView:
    """A strided view of a buffer.

    Offsets are bytes from the buffer's first byte; strides are elements, never negative.
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    item: int  # bytes of an element

    @cached_property
    def span(self) -> int:
        """The number of elements from the first to the last, holes included."""
        if not all(self.shape):
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def low(self) -> int:
        return self.offset

    @cached_property
    def high(self) -> int:
        return self.offset + self.span * self.item

    @cached_property
    def distinct(self) -> int:
        """The number of different elements: fewer than the shape says where a stride is 0."""
        return math.prod(n for n, s in zip(self.shape, self.strides, strict=True) if s or not n)

    @cached_property
    def _steps(self) -> list[tuple[int, int, int]]:
        """(stride, size, dimension) of dimensions with several elements and a stride above 0, widest stride first."""
        moving = [(s, n, dim) for dim, (n, s) in enumerate(zip(self.shape, self.strides)) if n > 1 and s > 0]
        return sorted(moving, key=lambda step: -step[0])

    @cached_property
    def _nested(self) -> bool:
        """True where each dimension's stride is at least as wide as everything that the narrower dimensions span."""
        inner = [1 + sum((n - 1) * s for s, n, _ in self._steps[at + 1 :]) for at in range(len(self._steps))]
        return all(stride >= span for (stride, _, _), span in zip(self._steps, inner))

    @property
    def has_holes(self) -> bool:
        return self.distinct < self.span

    @cached_property
    def holes(self) -> np.ndarray | None:
        """Bools, from the first element to the last: true outside of the view.

        None without holes, or if too many to list.
        """
        if not self.has_holes or self.span > MOST_HOLE_ELEMENTS:
            return None
        holes = np.ones(self.span, bool)
        np.lib.stride_tricks.as_strided(holes, self.shape, self.strides)[...] = False
        return holes if holes.any() else None

    def in_holes(self, offsets: np.ndarray) -> np.ndarray | None:
        """Returns by byte offset (int64, from low to high) whether it lies in a hole. None if no hole is known."""
        if not self.has_holes:
            return None
        if self.span <= MOST_HOLE_ELEMENTS:
            return None if self.holes is None else self.holes[(offsets - self.offset) // self.item]
        return self._in_strides(offsets) if self._nested else None

    def is_solid(self, low: int, high: int) -> bool:
        """Returns whether there is no hole from one byte offset to another, both inside.

        False also where the view is too large for a table of holes.
        """
        if self.holes is None:
            return self.span <= MOST_HOLE_ELEMENTS
        return not self.holes[self.linear(low) : self.linear(high) + 1].any()

    def _in_strides(self, offsets: np.ndarray) -> np.ndarray:
        rest = (offsets - self.offset) // self.item
        bad = np.zeros(rest.shape, bool)
        for stride, size, _ in self._steps:
            index, rest = np.divmod(rest, stride)
            bad |= index >= size
        return bad | (rest != 0)

    def is_part_of(self, other: BufferView) -> bool:
        """Returns whether all elements of this view belong to the other view; True also if it is too large to check."""
        if self == other or not self.span:
            return True
        if self.low < other.low or self.high > other.high:
            return False
        if not other.has_holes or self.span > MOST_HOLE_ELEMENTS:
            return True
        holes = other.in_holes(self.offsets)
        return holes is None or not holes.any()

    @property
    def offsets(self) -> np.ndarray:
        """The byte offsets of the elements, row by row (int64)."""
        offsets = np.full((1,) * len(self.shape), self.offset, np.int64)
        for dim, (size, stride) in enumerate(zip(self.shape, self.strides)):
            shape = [size if other == dim else 1 for other in range(len(self.shape))]
            offsets = offsets + (np.arange(size, dtype=np.int64) * (stride * self.item)).reshape(shape)
        return offsets.reshape(-1)

    def indices(self, offsets: np.ndarray) -> np.ndarray:
        """Returns [elements, dimensions]: the indices in the view's shape of byte offsets that lead to an element."""
        rest = (offsets - self.offset) // self.item
        index = np.zeros((rest.size, len(self.shape)), np.int64)
        inside = (offsets >= self.low) & (offsets < self.high)
        for stride, size, dim in self._steps:
            index[:, dim], rest = np.divmod(rest, stride)
            inside &= index[:, dim] < size
        return index[inside & (rest == 0)]

    def linear(self, offset: int) -> int:
        """Returns the number of elements from the view's first element to a byte offset; it may be negative."""
        return (offset - self.offset) // self.item

    def holds(self, offset: int) -> bool:
        """Returns whether an element of the view lies at this byte offset."""
        return self.low <= offset < self.high and not self.is_between(offset)

    def is_between(self, offset: int) -> bool:
        if not self.low <= offset < self.high:
            return False
        bad = self.in_holes(np.array([offset]))
        return bad is not None and bool(bad[0])

    def element(self, offset: int) -> list[int]:
        """Returns the indices of the element at this byte offset; [] if there is none, or the shape is ()."""
        rest = self.linear(offset)
        if not self.low <= offset < self.high or not self.shape:
            return []
        index = [0] * len(self.shape)
        for stride, _, dim in self._steps:
            index[dim], rest = divmod(rest, stride)
        inside = rest == 0 and all(i < n for i, n in zip(index, self.shape, strict=True))
        return index if inside else []
