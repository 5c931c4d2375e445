"""Values of memory too large to hold: a short table, and a rule that says which of its entries each element has.

With the table every element is known, so a page can be made when a kernel touches it, and what a kernel stored can be
compared with the right result of these very inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

ENTRIES = 1 << 16  # of a table: a wrong address has the right value by chance once in this many cases
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)  # odd; the upper bits of a product with it depend on all bits of the element


def entries_in(
    table: int, elements: np.ndarray, shape: Sequence[int], strides: Sequence[int], first: int
) -> np.ndarray:
    """Returns the numbers of elements' entries in a table of `table` entries, as entries_of does.

    A table with an entry for each element of an argument is that argument, in order. The argument's view has this
    shape, these strides and this first element; what lies in a hole is an element before it.
    """
    if math.prod(shape) != table:
        return entries_of(elements)
    left, entries = np.maximum(elements - first, 0), np.zeros(elements.shape, np.int64)
    for axis in sorted(range(len(shape)), key=lambda axis: strides[axis], reverse=True):
        if strides[axis]:
            at = np.minimum(left // strides[axis], shape[axis] - 1)
            left, entries = left - at * strides[axis], entries + at * math.prod(shape[axis + 1 :])
    return entries


def entries_of(elements: np.ndarray) -> np.ndarray:
    """Returns the numbers of the entries, below ENTRIES, of element numbers (int64, counted from the start of a
    memory); int64, in the same shape."""
    mixed = elements.view(np.uint64) * _MIX
    mixed >>= np.uint64(48)  # in place: there may be as many as a cache has elements
    return mixed.view(np.int64)
