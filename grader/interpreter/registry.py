"""The table of all operations that are carried out here: the maker of each, and what is known about the operation.

A maker gets an operation and returns the function that computes it from arrays. It decides as much as it can once per
kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grader.ttir.module import Operation

Computed = Callable[..., Any]  # arrays, one per operand -> an array, or a tuple of several results
Maker = Callable[..., Computed]
Region = Callable[[list], list]  # arrays, one per argument of a region's block -> its terminator's operands


@dataclass(frozen=True)
class OperationEntry:
    """The maker of an operation, and facts about the operation. Operands are told by their positions, from 0."""

    make: Maker
    stateful: bool = False  # what is made gets the frame before the operands
    fold: bool = False  # its region is evaluated lane by lane; the maker gets the function that does it, too
    control: bool = False  # runs regions or functions; the maker gets its regions and the kernel's functions, too
    approximate: bool = False  # its float32 results on a GPU are not IEEE's nearest: their last bits may differ
    access: str = ""  # "load", "store" or "atomic", if it reads or writes memory
    mask: int | None = None  # the operand that says in which lanes an access takes place, where there is one
    stored: int | None = None  # the operand that an access stores
    others: tuple[int, ...] = ()  # operands that lead an access nowhere: `other`, a number to compare with, a timeout

    def mask_of(self, operation: Operation) -> int | None:
        """Returns the position of this operation's mask; None if it has no mask."""
        types = operation.operand_types
        there = self.mask is not None and self.mask < len(types) and types[self.mask].element == "i1"
        return self.mask if there else None

    def leading(self, operation: Operation) -> list[int]:
        """Returns the positions of the operands that say where this access leads, or whether it takes place."""
        return [at for at in range(len(operation.operands)) if at not in (self.stored, *self.others)]


ENTRIES: dict[str, OperationEntry] = {}


def carries_out(*names: str, **facts: Any) -> Callable[[Maker], Maker]:
    """Returns a decorator that enters the maker of these operations, with these facts of an OperationEntry.

    Raises ValueError for an operation that has a maker already.
    """

    def enter(maker: Maker) -> Maker:
        for name in names:
            if name in ENTRIES:
                raise ValueError(f"two makers carry out {name}")
            ENTRIES[name] = OperationEntry(maker, **facts)
        return maker

    return enter
