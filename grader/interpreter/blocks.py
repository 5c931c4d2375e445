"""Access to blocks of a tensor: descriptors, made by the host or by a program, and block pointers (before Triton 3.9).

Both hold a base, sizes and strides. An access through a descriptor states the block's corner, and elements outside of
the tensor are left out. A block pointer carries its corner, and an access checks only the dimensions that it names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from grader.interpreter.accesses import (
    as_raw,
    as_values,
    change_atomically,
    combination,
    element,
    lanes_of,
    load,
    store,
)
from grader.interpreter.control import merged
from grader.interpreter.dtypes import dtype_of, over
from grader.interpreter.frame import Frame
from grader.interpreter.registry import carries_out
from grader.ttir.module import BadText, Operation, Type

# Kinds of tt.descriptor_reduce (add, min, max, inc, dec, and, or, xor) -> of tt.atomic_rmw, which has no inc or dec
REDUCTIONS = {1: 4, 2: 7, 3: 6, 6: 1, 7: 2, 8: 3}
ZERO_PADDING, NAN_PADDING = 1, 2


@dataclass(frozen=True)
class Descriptor:
    """A block-wise view of a tensor in memory, with a value per program in each array: [P] or [1].

    base: pointers (int64). strides: in elements. nan: elements outside of the tensor are read as NaN, otherwise as 0.
    """

    base: np.ndarray
    shape: tuple[np.ndarray, ...]
    strides: tuple[np.ndarray, ...]
    block: Type
    nan: bool

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.base, *self.shape, *self.strides

    def merged(self, mask: np.ndarray, other: Descriptor) -> Descriptor:
        """Returns a descriptor that equals this descriptor for the programs of the mask, and `other` for the rest."""
        shape, strides = _merged(mask, self.shape, other.shape), _merged(mask, self.strides, other.strides)
        return replace(self, base=merged(mask, self.base, other.base), shape=shape, strides=strides)


@dataclass(frozen=True)
class BlockPointer:
    tensor: Descriptor
    corner: tuple[np.ndarray, ...]  # i32, by program

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return *self.tensor.arrays, *self.corner

    def merged(self, mask: np.ndarray, other: BlockPointer) -> BlockPointer:
        return BlockPointer(self.tensor.merged(mask, other.tensor), _merged(mask, self.corner, other.corner))


def _merged(mask: np.ndarray, new: tuple[np.ndarray, ...], old: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return tuple(merged(mask, one, other) for one, other in zip(new, old))


# ---- descriptors ---------------------------------------------------------------------------------------------------


@carries_out("tt.make_tensor_descriptor")
def _make_descriptor(operation: Operation) -> Callable:
    (block,) = operation.result_types
    nan, rank = operation.attributes.get("padding") == NAN_PADDING, len(block.shape)

    def run(base: np.ndarray, *sizes: np.ndarray) -> Descriptor:
        return Descriptor(base, sizes[:rank], sizes[rank:], block, nan)

    return run


def _box(
    descriptor: Descriptor, corner: tuple[np.ndarray, ...], checked: tuple[int, ...] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pointers of a block's elements, and bools: true where an element lies inside of the tensor.

    Both broadcast to [P, *block]. Only the `checked` dimensions are compared with the tensor's sizes; None: all.
    """
    block = descriptor.block.shape
    indices = []
    for axis, size in enumerate(block):
        steps = np.arange(size).reshape([size if dim == axis else 1 for dim in range(len(block))])
        indices.append(over(corner[axis].astype(np.int64), len(block)) + steps)
    return _elements(descriptor, indices, checked)


def _elements(
    descriptor: Descriptor, indices: list[np.ndarray], checked: tuple[int, ...] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    rank, size = len(indices), element(descriptor.block).itemsize
    pointers, inside = over(descriptor.base, rank), np.ones((1,) * (rank + 1), bool)
    for axis, (index, length, stride) in enumerate(zip(indices, descriptor.shape, descriptor.strides)):
        pointers = pointers + index * over(stride.astype(np.int64), rank) * size
        if checked is None or axis in checked:
            inside = inside & (index >= 0) & (index < over(length.astype(np.int64), rank))
    return pointers, inside


def _rows(descriptor: Descriptor, rows: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pointers of some rows of a two-dimensional tensor, from `column` on, and bools as _box does."""
    width = descriptor.block.shape[-1]
    across = over(column.astype(np.int64), 2) + np.arange(width)
    return _elements(descriptor, [rows.astype(np.int64)[:, :, None], across])


def _read_box(frame: Frame, operation: Operation, descriptor: Descriptor, box: tuple) -> np.ndarray:
    (kind,) = operation.result_types
    dtype = dtype_of(kind)
    pointers, inside = box
    shape = np.broadcast_shapes(pointers.shape, inside.shape)[1:]
    lanes = lanes_of(frame, pointers, inside, shape)
    raw = frame.batch.memory.load(lanes.pointers, dtype.itemsize, operation, lanes.programs, lanes.logged)
    padding = np.full((), np.nan if descriptor.nan else 0).astype(dtype)
    return lanes.spread(as_values(raw, dtype), padding).reshape(frame.count, *kind.shape)


def _write_box(frame: Frame, operation: Operation, box: tuple, values: np.ndarray) -> None:
    pointers, inside = box
    shape = np.broadcast_shapes(pointers.shape, inside.shape)[1:]
    lanes = lanes_of(frame, pointers, inside, shape)
    raw = as_raw(lanes.of(_blocked(values, shape)))
    frame.batch.memory.store(lanes.pointers, raw, values.dtype.itemsize, operation, lanes.programs, lanes.logged)


def _blocked(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns `values` with the leading dimensions of 1 that the descriptor's block has and the tensor may lack."""
    missing = len(shape) + 1 - values.ndim
    return values.reshape(values.shape[0], *(1,) * missing, *values.shape[1:]) if missing > 0 else values


@carries_out("tt.descriptor_load", stateful=True, access="load")
def _descriptor_load(operation: Operation) -> Callable:
    def run(frame: Frame, descriptor: Descriptor, *corner: np.ndarray) -> np.ndarray:
        return _read_box(frame, operation, descriptor, _box(descriptor, corner))

    return run


@carries_out("tt.descriptor_store", stateful=True, access="store", stored=1)
def _descriptor_store(operation: Operation) -> Callable:
    def run(frame: Frame, descriptor: Descriptor, values: np.ndarray, *corner: np.ndarray) -> None:
        _write_box(frame, operation, _box(descriptor, corner), values)

    return run


@carries_out("tt.descriptor_reduce", stateful=True, access="atomic", stored=1)
def _descriptor_reduce(operation: Operation) -> Callable:
    kind = REDUCTIONS.get(int(operation.attributes["kind"]))
    if kind is None:
        raise BadText("a descriptor's reduction of an unknown kind")

    def run(frame: Frame, descriptor: Descriptor, values: np.ndarray, *corner: np.ndarray) -> None:
        pointers, inside = _box(descriptor, corner)
        shape = np.broadcast_shapes(pointers.shape, inside.shape)[1:]
        lanes = lanes_of(frame, pointers, inside, shape)
        raw, combine = as_raw(lanes.of(_blocked(values, shape))), combination(kind, values.dtype)
        change_atomically(frame, operation, lanes, values.dtype, lambda old, which: combine(old, raw[which]))

    return run


@carries_out("tt.descriptor_gather", stateful=True, access="load")
def _descriptor_gather(operation: Operation) -> Callable:
    def run(frame: Frame, descriptor: Descriptor, rows: np.ndarray, column: np.ndarray) -> np.ndarray:
        return _read_box(frame, operation, descriptor, _rows(descriptor, rows, column))

    return run


@carries_out("tt.descriptor_scatter", stateful=True, access="store", stored=3)
def _descriptor_scatter(operation: Operation) -> Callable:
    def run(frame: Frame, descriptor: Descriptor, rows: np.ndarray, column: np.ndarray, values: np.ndarray) -> None:
        _write_box(frame, operation, _rows(descriptor, rows, column), values)

    return run


# ---- block pointers ------------------------------------------------------------------------------------------------


@carries_out("tt.make_tensor_ptr")
def _make_block_pointer(operation: Operation) -> Callable:
    (block,) = operation.result_types
    rank = len(block.shape)

    def run(base: np.ndarray, *numbers: np.ndarray) -> BlockPointer:
        shape, strides, corner = numbers[:rank], numbers[rank : 2 * rank], numbers[2 * rank :]
        return BlockPointer(Descriptor(base, shape, strides, block, nan=False), corner)

    return run


@carries_out("tt.advance")
def _advance(operation: Operation) -> Callable:
    def run(pointer: BlockPointer, *steps: np.ndarray) -> BlockPointer:
        return replace(pointer, corner=tuple(at + step for at, step in zip(pointer.corner, steps)))

    return run


@carries_out("tt.load", stateful=True, access="load", mask=1, others=(2,))
def _load(operation: Operation) -> Callable:
    kind, read = operation.operand_types[0], load(operation)
    if kind.kind != "block pointer":
        return read
    padding, dtype = operation.attributes.get("padding"), element(kind)
    padded: dict[object, np.ndarray] = {
        ZERO_PADDING: np.zeros((), dtype), NAN_PADDING: np.full((), np.nan).astype(dtype),
    }  # fmt: skip
    other = padded.get(padding)
    checked = _checked(operation)

    def run(frame: Frame, pointer: BlockPointer) -> np.ndarray:
        pointers, inside = _box(pointer.tensor, pointer.corner, checked)
        return read(frame, pointers, inside if checked else None, other)

    return run


@carries_out("tt.store", stateful=True, access="store", stored=1, mask=2)
def _store(operation: Operation) -> Callable:
    kind, write, checked = operation.operand_types[0], store(operation), _checked(operation)
    if kind.kind != "block pointer":
        return write

    def run(frame: Frame, pointer: BlockPointer, values: np.ndarray) -> None:
        pointers, inside = _box(pointer.tensor, pointer.corner, checked)
        write(frame, pointers, values, inside if checked else None)

    return run


def _checked(operation: Operation) -> tuple[int, ...]:
    """Returns the dimensions in which an access through a block pointer checks the tensor's bounds. Raises BadText."""
    checked = tuple(int(axis) for axis in operation.attributes.get("boundaryCheck") or ())
    if any(not 0 <= axis < len(operation.operand_types[0].shape) for axis in checked):
        raise BadText("a boundary check of a dimension that is not there")
    return checked
