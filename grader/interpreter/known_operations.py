"""Finds what carries out an operation, after every file that carries some out has entered them in the registry."""

from __future__ import annotations

from grader.interpreter import (
    accesses,
    arithmetic,
    blocks,
    control,
    conversions,
    mathematics,
    products,
    promises,
    reductions,
    registry,
    shape_operations,
)
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.libdevice import symbols as libdevice
from grader.interpreter.registry import OperationEntry

# Each enters its operations when it is imported.
_SUBJECTS = (accesses, arithmetic, blocks, control, conversions, libdevice, mathematics, products, promises, reductions,
             shape_operations)  # fmt: skip

ACCESSES = {name: entry for name, entry in registry.ENTRIES.items() if entry.access}


def entry_of(name: str) -> OperationEntry:
    """Returns what carries out the operation of this name, and what is known about it. Raises Unsupported."""
    entry = registry.ENTRIES.get(name)
    if entry is None:
        raise Unsupported(f"operation {name} is not known here yet")
    return entry
