"""Prepares operations without memory, control flow or program numbers: finds the function that computes each result."""

from __future__ import annotations

from grader.interpreter import arithmetic, conversions, mathematics, products, reductions, registry, shape_operations
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.libdevice import symbols as libdevice
from grader.interpreter.registry import Computed, Region
from grader.ttir.module import Operation

_SUBJECTS = (
    arithmetic,
    conversions,
    libdevice,
    mathematics,
    products,
    reductions,
    shape_operations,
)  # they register themselves

KNOWN: frozenset[str] = frozenset(registry.MAKERS) | frozenset(registry.FOLD_MAKERS)
APPROXIMATE: frozenset[str] = frozenset(registry.APPROXIMATE)  # a GPU's results may differ in their last bits


def prepare(op: Operation) -> Computed:
    """Returns the function that computes this operation. Raises Unsupported.

    It takes an array for each operand and returns an array, or a tuple for several results. Arrays are [programs or 1,
    each axis of the tensor or 1].
    """
    maker = registry.MAKERS.get(op.name)
    if maker is None:
        raise Unsupported(f"operation {op.name} is not known here yet")
    return maker(op)


def prepare_fold(op: Operation, evaluate: Region) -> Computed:
    """Returns the function that computes an operation with a region. Raises Unsupported.

    `evaluate` carries the region out on flat arrays: see reductions.py.
    """
    maker = registry.FOLD_MAKERS.get(op.name)
    if maker is None:
        raise Unsupported(f"operation {op.name} is not known here yet")
    return maker(op, evaluate)
