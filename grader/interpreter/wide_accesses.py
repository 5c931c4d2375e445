"""How many neighbouring lanes a thread may move at once, where a kernel promises runs by tl.max_contiguous.

Where neighbours lie side by side in memory, and begin at a multiple of all their bytes, one access moves them all. Both
follow from what a kernel promises. A call whose kernel breaks such a promise is interpreted once more with the promised
values. An access that may be wide there, and has a group of lanes that really begins elsewhere, ends the kernel on a
GPU. Where the promised values do not allow it either, as in a matrix whose columns begin at odd places, the compiler
does not know enough for wide accesses, and the broken promise does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

WIDTHS = (2, 4, 8, 16, 32)  # lanes
MOST_BYTES = 32  # that a thread moves at once, on the GPUs that move most

Access = tuple[int, int, int]  # the line of an access, the number of its pointers in the text, an axis


@dataclass
class WideAccesses:
    """The widths of accesses, as sums of WIDTHS."""

    possible: dict[Access, int] = field(default_factory=dict)  # for all groups of lanes
    misaligned: dict[Access, int] = field(default_factory=dict)  # for some group with a lane that takes part

    def note(self, line: int, number: int, pointers: np.ndarray, mask: np.ndarray, item: int) -> None:
        """Adds an access. `pointers`, `mask`: by program and lane. `item`: bytes of an element."""
        for axis in range(1, pointers.ndim):
            possible = misaligned = 0
            for width in WIDTHS:
                if width * item > MOST_BYTES or pointers.shape[axis] % width:
                    break
                groups, taking_part = (_groups(values, axis, width) for values in (pointers, mask))
                off = groups[..., 0] % (width * item) != 0
                if not off.any() and (np.diff(groups, axis=-1) == item).all():
                    possible += width
                if (off & taking_part.any(axis=-1)).any():
                    misaligned += width
            key = line, number, axis
            self.possible[key] = self.possible.get(key, possible) & possible
            self.misaligned[key] = self.misaligned.get(key, 0) | misaligned


def _groups(values: np.ndarray, axis: int, width: int) -> np.ndarray:
    moved = np.moveaxis(values, axis, -1)
    return moved.reshape(*moved.shape[:-1], -1, width)
