"""Pointers that know which argument of the launch they belong to.

Each tensor argument of a launch has a number, and its pointers carry the number in bits 48 to 62, above every address.
All pointer arithmetic of the interpreter is numpy uint64, so the number survives offsets, broadcasts and descriptors,
and an access knows which argument it was meant for, even where its address lies in another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from triton.runtime import interpreter

from grader.child.geometry import Geometry
from grader.child.shadow import Shadow

TAG_SHIFT = 48
ADDRESS_MASK = np.uint64((1 << TAG_SHIFT) - 1)


class View:
    """A tensor argument of a launch."""

    def __init__(self, tensor: torch.Tensor, shadow: Shadow, tag: int):
        self.geometry, self.shadow = Geometry(tensor), shadow
        self.low, self.high = (self.geometry.low | tag << TAG_SHIFT, self.geometry.high | tag << TAG_SHIFT)
        self.base = np.uint64(shadow.base | tag << TAG_SHIFT)

    def outside(self, tagged: np.ndarray, lowest: int, highest: int, item: int) -> np.ndarray | None:
        """Which of the pointers do not lead to elements of this view; None: all do."""
        if lowest < self.low or highest + item > self.high:
            return (tagged < np.uint64(self.low)) | (tagged > np.uint64(max(self.high - item, 0)))
        if self.geometry.holes is None:
            return None
        bad = self.geometry.holes[(tagged - np.uint64(self.low)).view(np.int64) // self.geometry.item]
        return bad if bad.any() else None


@dataclass
class Access:
    """One load, store or atomic, ready for the interpreter: pointers without numbers, masks without bad lanes."""

    pointers: interpreter.TensorHandle
    mask: interpreter.TensorHandle | None
    view: View | None = None  # None: no argument, or several
    active: np.ndarray | None = None  # the pointers of the lanes that touch memory


def make_handle(data: np.ndarray, dtype) -> interpreter.TensorHandle:
    """A TensorHandle without the checks of its constructor."""
    handle = object.__new__(interpreter.TensorHandle)
    handle.data, handle.dtype, handle.attr = data, dtype, {}
    return handle


def item_size(pointers) -> int:
    return max(1, pointers.get_element_ty().primitive_bitwidth // 8)


def is_increasing(addresses: np.ndarray) -> bool:
    return bool((addresses[1:] > addresses[:-1]).all())


def distinct(addresses: np.ndarray) -> int:
    return addresses.size if is_increasing(addresses) else int(np.unique(addresses).size)
