"""tt.reduce, tt.scan and tt.map_elementwise: operations that carry a function of single elements.

The caller's `evaluate` computes this function. It gets a flat array [N] for each argument of the region's block, as if
N programs ran it side by side, and returns the terminator's operands, each [N] or [1].

Floats are summed as a tree, half to half, as a GPU's threads do. A sum of one element after the other would round
differently, and more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grader.interpreter.arithmetic import BOOL, ON_BITS, rounding_each
from grader.interpreter.dtypes import Unsupported, dtype_of, is_float, spelled_out, unsigned, wide
from grader.interpreter.registry import Computed, Region, carries_out
from grader.ttir.module import Operation

_SUMS = {"arith.addf": np.add, "arith.mulf": np.multiply, "arith.addi": np.add, "arith.muli": np.multiply}
_CHOICES = {  # idempotent, and independent of the order
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
}
_WHOLE = {**_SUMS, **_CHOICES, "arith.xori": np.bitwise_xor}


def only_operation(op: Operation) -> str:
    """Returns the name of the single operation that combines the region's two arguments; "" for any other region."""
    if len(op.regions) != 1 or len(op.regions[0]) != 1:
        return ""
    block = op.regions[0][0]
    if len(block.operations) != 2 or len(block.arguments) != 2:
        return ""
    combine, last = block.operations
    simple = sorted(combine.operands) == sorted(block.arguments) and last.operands == combine.results
    return combine.name if simple and block.types[0] == block.types[1] else ""


def whole_function(op: Operation) -> np.ufunc | None:
    """Returns the function of numpy that the region is; None for any other region."""
    name = only_operation(op)
    if name not in _WHOLE:
        return None
    return ON_BITS[name] if dtype_of(op.operand_types[0]) == BOOL else _WHOLE[name]


def axis_of(op: Operation) -> tuple[int, int]:
    """Returns the axis of the arrays along which the operation works, and its length in the text.

    Raises Unsupported for a length that is no power of two, and for operands of different shapes.
    """
    axis, shape = op.attributes["axis"], op.operand_types[0].shape
    if any(type.shape != shape for type in op.operand_types) or not 0 <= axis < len(shape):
        raise Unsupported(f"operation {op.name} along axis {axis} of {shape} is not known here")
    if shape[axis] & (shape[axis] - 1):
        raise Unsupported(f"operation {op.name} of {shape[axis]} elements, no power of two, is not known here")
    return axis + 1, shape[axis]


# ---- to one element ---------------------------------------------------------------------------------------------


@carries_out("tt.reduce", stateful=True, fold=True)
def _reduce(op: Operation, evaluate: Region) -> Computed:
    axis, size = axis_of(op)
    dtype = dtype_of(op.operand_types[0])
    whole = whole_function(op)
    if whole is None:
        return _reduce_by_region(op, evaluate, axis, size)
    if only_operation(op) in _CHOICES:
        return _on_unsigned(op, lambda x: whole.reduce(wide(x), axis=axis).astype(x.dtype, copy=False))
    by_tree = _tree(rounding_each(whole, dtype), axis, size)
    if is_float(dtype):
        return by_tree

    def total(x: np.ndarray) -> np.ndarray:
        return whole.reduce(x, axis=axis, dtype=dtype) if x.shape[axis] == size else by_tree(x)

    return total


def _on_unsigned(op: Operation, function: Computed) -> Computed:
    """Returns `function` with its integers read as unsigned, where the region compares them so."""
    if only_operation(op) not in ("arith.maxui", "arith.minui") or dtype_of(op.operand_types[0]) == BOOL:
        return function
    return lambda x: function(unsigned(x)).view(x.dtype)


def _tree(function: Callable[..., np.ndarray], axis: int, size: int) -> Computed:
    """Returns a function that combines the second half with the first, along `axis`, until one element is left.

    An axis of length 1 stands for equal elements, of which each half is the element.
    """
    before = (slice(None),) * axis

    def fold(x: np.ndarray) -> np.ndarray:
        left = size
        while left > 1:
            left //= 2
            alike = x.shape[axis] == 1
            x = function(x, x) if alike else function(x[(*before, slice(left))], x[(*before, slice(left, None))])
        return x.reshape(*x.shape[:axis], *x.shape[axis + 1 :])

    return fold


def in_front(xs: tuple[np.ndarray, ...], axis: int, size: int) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """Returns each array as [size, all other axes in one], and the shape of the other axes."""
    shape = list(np.broadcast_shapes(*[x.shape for x in xs]))
    shape[axis] = size
    rest = (*shape[:axis], *shape[axis + 1 :])
    return [np.moveaxis(np.broadcast_to(x, shape), axis, 0).reshape(size, -1) for x in xs], rest


def combine(evaluate: Region, left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    """Returns the results of the region for arrays [n, rest], which it sees flat; they are [n, rest] too."""
    shape = left[0].shape
    flat = [np.ascontiguousarray(x).reshape(-1) for x in (*left, *right)]
    return [np.broadcast_to(x, flat[0].shape).reshape(shape) for x in evaluate(flat)]


def _reduce_by_region(op: Operation, evaluate: Region, axis: int, size: int) -> Computed:
    single = len(op.operand_types) == 1

    def reduce(*xs: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        parts, rest = in_front(xs, axis, size)
        left = size
        while left > 1:
            left //= 2
            parts = combine(evaluate, [x[:left] for x in parts], [x[left:] for x in parts])
        out = tuple(x.reshape(rest) for x in parts)
        return out[0] if single else out

    return reduce


# ---- to as many -------------------------------------------------------------------------------------------------


@carries_out("tt.scan", stateful=True, fold=True)
def _scan(op: Operation, evaluate: Region) -> Computed:
    axis, size = axis_of(op)
    dtype = dtype_of(op.operand_types[0])
    backward = bool(op.attributes.get("reverse", False))
    whole, single = whole_function(op), len(op.operand_types) == 1
    if whole is not None and not is_float(dtype):
        return _on_unsigned(op, _accumulate(whole, axis, op.operand_types[0].shape, backward))
    if whole is not None:
        return _running_sum(rounding_each(whole, dtype), axis, op.operand_types[0].shape, backward)

    def scan(*xs: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        parts, rest = in_front(xs, axis, size)
        if backward:
            parts = [x[::-1] for x in parts]
        parts = _running(evaluate, parts, size)
        if backward:
            parts = [x[::-1] for x in parts]
        out = tuple(np.moveaxis(x.reshape(size, *rest), 0, axis) for x in parts)
        return out[0] if single else out

    return scan


def _running(evaluate: Region, parts: list[np.ndarray], size: int) -> list[np.ndarray]:
    """Returns inclusive scans of arrays [size, rest] along the first axis, in log2(size) steps.

    The algorithm is in Hillis and Steele, Data parallel algorithms, 1986.
    """
    distance = 1
    while distance < size:
        further = combine(evaluate, [x[:-distance] for x in parts], [x[distance:] for x in parts])
        parts = [np.concatenate([x[:distance], new]) for x, new in zip(parts, further)]
        distance *= 2
    return parts


def _running_sum(function: Callable[..., np.ndarray], axis: int, shape: tuple[int, ...], backward: bool) -> Computed:
    """Returns the function that scans a single operand by a function of floats along an axis, in steps as _running."""
    before, size = (slice(None),) * axis, shape[axis - 1]

    def scan(x: np.ndarray) -> np.ndarray:
        out = np.array(spelled_out(x, shape))
        ordered = np.flip(out, axis) if backward else out
        distance = 1
        while distance < size:
            later = ordered[(*before, slice(distance, None))]
            later[...] = function(ordered[(*before, slice(-distance))], later)
            distance *= 2
        return out

    return scan


def _accumulate(whole: np.ufunc, axis: int, shape: tuple[int, ...], backward: bool) -> Computed:
    def scan(x: np.ndarray) -> np.ndarray:
        x = spelled_out(x, shape)
        x = np.flip(x, axis) if backward else x
        out = whole.accumulate(x, axis=axis, dtype=x.dtype)
        return np.flip(out, axis) if backward else out

    return scan


# ---- element by element -----------------------------------------------------------------------------------------


@carries_out("tt.map_elementwise", stateful=True, fold=True)
def _map_elementwise(op: Operation, evaluate: Region) -> Computed:
    """Returns the function that computes tt.map_elementwise.

    The region's arguments are `pack` neighbours of the first operand, then of the second, and so on; its results have
    the same order.
    """
    pack, shape = op.attributes.get("pack", 1), op.operand_types[0].shape
    results = len(op.result_types)

    def compute(*xs: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        whole = np.broadcast_shapes(*[x.shape for x in xs])
        if pack > 1:
            whole = (whole[0], *shape)
        columns = [np.broadcast_to(x, whole).reshape(-1, pack) for x in xs]
        given = [np.ascontiguousarray(x[:, n]) for x in columns for n in range(pack)]
        yielded = [np.broadcast_to(x, given[0].shape) for x in evaluate(given)]
        packed = [yielded[n * pack : (n + 1) * pack] for n in range(results)]
        out = tuple(np.stack(group, axis=-1).reshape(whole) for group in packed)
        return out[0] if results == 1 else out

    return compute
