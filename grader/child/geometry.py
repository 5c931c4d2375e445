"""Where a tensor's elements lie in memory, and which bytes between the first and the last are not its own."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch

MOST_HOLE_ELEMENTS = 1 << 26


def span_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last of a view, holes counted."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else 0


class Geometry:
    """A strided view of memory. Addresses are plain integers; strides count elements and are not negative."""

    def __init__(self, tensor: torch.Tensor):
        self.low = tensor.data_ptr()
        self.item = tensor.element_size()
        self.shape = tuple(tensor.shape)
        self.strides = tuple(tensor.stride())
        self.span = span_of(self.shape, self.strides)
        self.high = self.low + self.span * self.item

    @cached_property
    def distinct(self) -> int:
        """How many different elements there are: fewer than the shape says where a stride is 0."""
        return math.prod(n for n, s in zip(self.shape, self.strides, strict=True) if s or not n)

    @cached_property
    def holes(self) -> np.ndarray | None:
        """For each element from the first to the last: is it outside the view? None: none is."""
        if not self.distinct < self.span <= MOST_HOLE_ELEMENTS:
            return None
        holes = np.ones(self.span, bool)
        strides = holes.itemsize * np.array(self.strides, int)
        np.lib.stride_tricks.as_strided(holes, self.shape, strides)[...] = False
        return holes if holes.any() else None

    def linear(self, address: int) -> int:
        """Elements from the first one of the view; may be negative."""
        return (address - self.low) // self.item

    def is_between(self, address: int) -> bool:
        return self.low <= address < self.high and self.holes is not None and bool(self.holes[self.linear(address)])

    def element(self, address: int) -> list[int]:
        """The index in the view's shape, [] if no element has this address."""
        rest = self.linear(address)
        if not self.low <= address < self.high or not self.shape:
            return []
        index = [0] * len(self.shape)
        for dim in sorted(range(len(self.shape)), key=lambda d: self.strides[d], reverse=True):
            if self.shape[dim] > 1 and self.strides[dim] > 0:
                index[dim], rest = divmod(rest, self.strides[dim])
        inside = rest == 0 and all(i < n for i, n in zip(index, self.shape, strict=True))
        return index if inside else []
