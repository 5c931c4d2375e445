"""Constants, ranges, and operations that move, repeat or count elements.

Axis 0 of an array counts programs. Axis n of a tensor is axis n + 1 of its array, and has length 1 where all elements
along it are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grader.interpreter.conversions import same
from grader.interpreter.dtypes import Unsupported, constant, dtype_of, is_float, over, spelled_out, unsigned
from grader.interpreter.frame import Frame
from grader.interpreter.promises import note
from grader.interpreter.registry import Computed, carries_out
from grader.ttir.module import Dense, Operation
from grader.wire.messages import GATHER


def always(x: np.ndarray) -> Callable[[], np.ndarray]:
    x = constant(x)
    return lambda: x


# ---- constants --------------------------------------------------------------------------------------------------


def number(value: Any, dtype: np.dtype) -> np.ndarray:
    """Returns one value of the text as an array [1]. Raises Unsupported for a value that does not fit the type.

    A whole number where a float is meant stands for the float's bits.
    """
    bits = np.dtype(f"u{dtype.itemsize}")
    if dtype.kind == "b":
        return np.array([bool(value)])
    if isinstance(value, (bool, int)):
        return np.array([int(value) & ((1 << 8 * dtype.itemsize) - 1)], bits).view(dtype)
    if not isinstance(value, float) or not is_float(dtype):
        raise Unsupported(f"a constant {value!r} of type {dtype} is not known here")
    return np.array([value], np.float64).astype(dtype)


@carries_out("arith.constant")
def _constant(op: Operation) -> Computed:
    shape, dtype = op.result_types[0].shape, dtype_of(op.result_types[0])
    value = op.attributes.get("value")
    values = value.values if isinstance(value, Dense) else (value,)
    if len(values) == 1:
        return always(over(number(values[0], dtype), len(shape)))
    if len(values) != op.result_types[0].lanes:
        raise Unsupported(f"a constant of {len(values)} values for {op.result_types[0].lanes} elements")
    return always(np.concatenate([number(element, dtype) for element in values]).reshape(1, *shape))


@carries_out("ub.poison")
def _poison(op: Operation) -> Computed:
    """Returns a function that gives zeros. A program with a defined meaning does not use the value."""
    return always(np.zeros((1,) * (1 + len(op.result_types[0].shape)), dtype_of(op.result_types[0])))


@carries_out("tt.make_range")
def _make_range(op: Operation) -> Computed:
    start, end = op.attributes["start"], op.attributes["end"]
    if op.result_types[0].shape != (end - start,):
        raise Unsupported(f"a range from {start} to {end} in {op.result_types[0].lanes} elements")
    return always(np.arange(start, end, dtype=dtype_of(op.result_types[0]))[None])


# ---- another shape ----------------------------------------------------------------------------------------------


@carries_out("tt.splat")
def _splat(op: Operation) -> Computed:
    shape = (1,) * len(op.result_types[0].shape)
    return lambda x: x.reshape(x.shape[0], *shape)


@carries_out("tt.unsplat")
def _unsplat(op: Operation) -> Computed:
    return lambda x: x.reshape(x.shape[0])


@carries_out("tt.broadcast")
def _broadcast(op: Operation) -> Computed:
    return same


@carries_out("tt.expand_dims")
def _expand_dims(op: Operation) -> Computed:
    axis = op.attributes["axis"] + 1
    return lambda x: x.reshape(*x.shape[:axis], 1, *x.shape[axis:])


@carries_out("tt.reshape")
def _reshape(op: Operation) -> Computed:
    """Returns the function that reshapes row by row, also where the text allows any order."""
    old, new = op.operand_types[0].shape, op.result_types[0].shape
    if _without_ones(old) == _without_ones(new):  # axes of 1 come or go: what is broadcast stays so
        kept = [axis + 1 for axis, size in enumerate(old) if size != 1]

        def rearrange(x: np.ndarray) -> np.ndarray:
            sizes = iter([x.shape[axis] for axis in kept])
            return x.reshape(x.shape[0], *[1 if size == 1 else next(sizes) for size in new])

        return rearrange
    ones = (1,) * len(new)

    def reshape(x: np.ndarray) -> np.ndarray:
        count = x.shape[0]
        return x.reshape(count, *ones) if x.size == count else spelled_out(x, old).reshape(count, *new)

    return reshape


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


@carries_out("tt.trans")
def _transpose(op: Operation) -> Computed:
    order = (0, *[axis + 1 for axis in op.attributes["order"]])
    return lambda x: x.transpose(order)


# ---- several into one, one into several -------------------------------------------------------------------------


def same_programs(*xs: np.ndarray) -> list[np.ndarray]:
    """Returns all arrays, broadcast to the same number of programs."""
    count = max(x.shape[0] for x in xs)
    return [x if x.shape[0] == count else np.broadcast_to(x, (count, *x.shape[1:])) for x in xs]


@carries_out("tt.join")
def _join(op: Operation) -> Computed:
    return lambda x, y: np.stack(np.broadcast_arrays(x, y), axis=-1)


@carries_out("tt.split")
def _split(op: Operation) -> Computed:
    return lambda x: (x[..., 0], x[..., -1])


@carries_out("tt.cat")
def _cat(op: Operation) -> Computed:
    """Returns the function that puts one operand after the other, although the text promises no order."""
    shapes = [type.shape for type in op.operand_types]

    def join(*xs: np.ndarray) -> np.ndarray:
        return np.concatenate(same_programs(*[spelled_out(x, shape) for x, shape in zip(xs, shapes)]), axis=1)

    return join


@carries_out("tt.gather", stateful=True)
def _gather(op: Operation) -> Callable:
    """Returns the function that gathers elements.

    An index outside of the tensor is noted: a GPU reads other memory there. It gets the nearest element.
    """
    axis, source_type, index_type = op.attributes["axis"] + 1, *op.operand_types
    last = source_type.shape[axis - 1] - 1

    def gather(frame: Frame, source: np.ndarray, index: np.ndarray) -> np.ndarray:
        outside = (index < 0) | (index > last)
        if outside.any():
            note(frame, GATHER, op, outside.reshape(len(outside), -1).any(axis=1))
        source, index = same_programs(spelled_out(source, source_type.shape), spelled_out(index, index_type.shape))
        return np.take_along_axis(source, np.clip(index, 0, last).astype(np.int64, copy=False), axis)

    return gather


@carries_out("tt.histogram")
def _histogram(op: Operation) -> Computed:
    """Returns the function that counts how often each number from 0 on occurs; numbers without a bin are left out."""
    shape, (bins,) = op.operand_types[0].shape, op.result_types[0].shape
    dtype = dtype_of(op.result_types[0])

    def histogram(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        x = spelled_out(unsigned(x), shape)
        counted = x < bins
        if mask is not None:
            x, mask, counted = same_programs(x, spelled_out(mask, shape), counted)
            counted = counted & mask
        count = x.shape[0]
        cells = np.arange(count)[:, None] * bins + np.where(counted, x, 0).astype(np.int64)
        return np.bincount(cells[counted], minlength=count * bins).reshape(count, bins).astype(dtype)

    return histogram
