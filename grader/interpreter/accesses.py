"""Loads, stores and atomics through pointers, and the operations that ask for a program's number or its grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.interpreter.buffers import FILLS
from grader.interpreter.dtypes import DTYPES, dtype_of, over, wide
from grader.interpreter.frame import Frame
from grader.interpreter.registry import carries_out
from grader.interpreter.shadow import ACQUIRE_RELEASE, RELAXED
from grader.ttir.module import Operation, Type

# Kinds of tt.atomic_rmw, as the text numbers them. fadd (5) is an addition too, in the type of its operands.
ATOMICS: dict[int, Callable] = {
    1: np.bitwise_and, 2: np.bitwise_or, 3: np.bitwise_xor, 4: np.add, 5: np.add, 6: np.maximum, 7: np.minimum,
    8: np.maximum, 9: np.minimum, 10: lambda old, new: new,
}  # fmt: skip
UNSIGNED = (8, 9)
SUM_OF_FLOATS = 5
GPU_WIDE, ONE_PROGRAM = 1, 2  # scopes of an atomic, as the text numbers them


def element(kind: Type) -> np.dtype:
    """Returns the dtype of an element.

    Descriptors write signed and unsigned integers, si32 or ui32; both are int32 here.
    """
    return DTYPES.get(kind.element) or DTYPES[kind.element[1:]]


# ---- lanes ---------------------------------------------------------------------------------------------------------


@dataclass
class AccessLanes:
    """The lanes of one access. `mask` is None where all lanes are active.

    `pointers` (int64) and `programs` (int32) are flat, and hold active lanes only.
    """

    shape: tuple[int, ...]  # programs first
    mask: np.ndarray | None
    pointers: np.ndarray
    programs: np.ndarray

    def of(self, values: np.ndarray) -> np.ndarray:
        """Returns the active lanes' elements of `values`, flat. `values` broadcasts to `shape`."""
        full = np.broadcast_to(values, self.shape)
        return full.reshape(-1) if self.mask is None else full[self.mask]

    def spread(self, values: np.ndarray, rest: np.ndarray | Any) -> np.ndarray:
        """Returns an array of `shape`: `values` in the active lanes, `rest` in the others."""
        if self.mask is None:
            return values.reshape(self.shape)
        out = np.empty(self.shape, values.dtype)
        out[...] = rest
        out[self.mask] = values
        return out

    @property
    def logged(self) -> tuple[np.ndarray | None, tuple[int, ...]]:
        return self.mask, self.shape


def lanes_of(frame: Frame, pointers: np.ndarray, mask: np.ndarray | None, shape: tuple[int, ...]) -> AccessLanes:
    whole = (frame.count, *shape)
    pointers = np.broadcast_to(pointers, whole)
    if mask is not None:
        mask = np.broadcast_to(mask, whole)
    if frame.active is not None:
        own = over(frame.active, len(shape))
        mask = np.broadcast_to(own, whole) if mask is None else mask & own
    if mask is not None and mask.all():
        mask = None
    programs = frame.batch.programs
    if mask is None:
        each = whole[1:] and int(np.prod(whole[1:]))
        return AccessLanes(whole, None, pointers.reshape(-1), np.repeat(programs, each) if shape else programs)
    counts = np.count_nonzero(mask.reshape(frame.count, -1), axis=1)
    return AccessLanes(whole, mask, pointers[mask], np.repeat(programs, counts))


def _poison(shape: tuple[int, ...], dtype: np.dtype, fill: str) -> np.ndarray | int:
    """Returns the content of masked lanes of a load without `other`, which spoils every result that it reaches.

    Floats are +inf and -inf in turn, since a maximum would skip NaN; integers are large, with both signs in turn. The
    fill "lowest" makes floats -inf: a kernel that uses these lanes in a maximum only is then right. "zero" gives 0.
    """
    if fill == "zero":
        return 0
    odd = (np.arange(int(np.prod(shape))) % 2 == 1).reshape(shape)
    if dtype.kind == "b":
        return odd
    if dtype.kind == "i":
        most = np.iinfo(dtype).max // (3 if fill == "poison" else 5)
        return np.where(odd, -most, most).astype(dtype)
    if fill == "lowest":
        return np.full(shape, -np.inf).astype(dtype)
    with np.errstate(all="ignore"):
        high = np.inf if fill == "poison" else np.full(dtype.itemsize, FILLS[fill], np.uint8).view(dtype)[0]
        return np.where(odd, -high, high).astype(dtype)


def as_values(raw: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return raw.view(np.uint8) != 0 if dtype.kind == "b" else raw.view(dtype)


def as_raw(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


# ---- loads and stores ----------------------------------------------------------------------------------------------


def load(operation: Operation) -> Callable:
    """Returns the function (frame, pointers, mask, other) -> values that carries out this load.

    `mask` and `other` may be None. A load through a block pointer uses the function with the pointers of the block's
    elements.
    """
    kind = operation.operand_types[0]
    dtype, shape, place = element(kind), kind.shape, operation.place

    def run(frame: Frame, pointers: np.ndarray, mask: np.ndarray | None = None, other: Any = None) -> np.ndarray:
        lanes = lanes_of(frame, pointers, mask, shape)
        if frame.batch.notes_widths:
            _note_widths(frame, operation, pointers, mask, dtype.itemsize)
        rest = None if other is None else as_raw(lanes.of(other))
        raw = frame.batch.memory.load(lanes.pointers, dtype.itemsize, operation, lanes.programs, lanes.logged, rest)
        values = as_values(raw, dtype)
        if lanes.mask is None:
            return values.reshape(lanes.shape)
        if other is None:
            if mask is not None:
                _note_masked_fill(frame, mask, place.line)
            other = _poison(lanes.shape, dtype, frame.batch.fill_of(place.line))
        return lanes.spread(values, other)

    return run


def _note_widths(frame: Frame, operation: Operation, pointers: np.ndarray, mask: np.ndarray | None, item: int) -> None:
    """Notes how wide this access may be, in the programs that are active here."""
    whole, active = (frame.count, *operation.operand_types[0].shape), frame.everyone()
    pointers, mask = (np.broadcast_to(lanes, whole)[active] for lanes in (pointers, True if mask is None else mask))
    frame.batch.wide.note(operation.place.line, operation.operands[0], pointers, mask, item)


def _note_masked_fill(frame: Frame, mask: np.ndarray, line: int) -> None:
    own = mask if frame.active is None else np.broadcast_to(mask, (frame.count, *mask.shape[1:]))[frame.active]
    if line not in frame.batch.unmasked_fills and not own.all():
        frame.batch.unmasked_fills.append(line)


def store(operation: Operation) -> Callable:
    """Returns the function (frame, pointers, values, mask) that carries out this store. `mask` may be None."""
    shape = operation.operand_types[0].shape

    def run(frame: Frame, pointers: np.ndarray, values: np.ndarray, mask: np.ndarray | None = None) -> None:
        lanes = lanes_of(frame, pointers, mask, shape)
        if frame.batch.notes_widths:
            _note_widths(frame, operation, pointers, mask, values.dtype.itemsize)
        raw = as_raw(lanes.of(values))
        frame.batch.memory.store(lanes.pointers, raw, values.dtype.itemsize, operation, lanes.programs, lanes.logged)

    return run


@carries_out("tt.addptr")
def _addptr(operation: Operation) -> Callable:
    size = element(operation.operand_types[0]).itemsize
    return lambda pointers, offsets: pointers + offsets.astype(np.int64) * size


# ---- atomics -------------------------------------------------------------------------------------------------------


def change_atomically(
    frame: Frame,
    operation: Operation,
    lanes: AccessLanes,
    dtype: np.dtype,
    change: Callable,
    together: Callable | None = None,
) -> np.ndarray:
    frame.batch.atomics = True
    frame.batch.asked += 1
    of_a_program = int(operation.attributes.get("scope", GPU_WIDE)) == ONE_PROGRAM  # then it orders no other program
    semantics = RELAXED if of_a_program else int(operation.attributes.get("sem", ACQUIRE_RELEASE))
    raw = frame.batch.memory.atomic(
        lanes.pointers, dtype.itemsize, operation, lanes.programs, change, semantics, lanes.logged, together
    )
    return lanes.spread(as_values(raw, dtype), np.zeros((), dtype))


@carries_out("tt.atomic_rmw", stateful=True, access="atomic", stored=1, mask=2)
def _read_modify_write(operation: Operation) -> Callable:
    kind = int(operation.attributes["atomic_rmw_op"])
    dtype, shape = dtype_of(operation.operand_types[1]), operation.operand_types[0].shape
    combine = combination(kind, dtype)

    def run(frame: Frame, pointers: np.ndarray, values: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        lanes = lanes_of(frame, pointers, mask, shape)
        raw = as_raw(lanes.of(values))
        frame.batch.float_sums |= kind == SUM_OF_FLOATS
        together = None if frame.batch.waits else _at_once(kind, dtype, raw)
        return change_atomically(frame, operation, lanes, dtype, lambda old, which: combine(old, raw[which]), together)

    return run


def _at_once(kind: int, dtype: np.dtype, values: np.ndarray) -> Callable | None:
    """Returns a function that changes all lanes in one call of numpy, for atomics whose results nobody uses.

    It takes memory's words, the index of each lane's word, and the lanes' numbers. None where numpy would round
    differently, or has no ufunc for this kind of atomic.
    """
    function, seen = ATOMICS[kind], np.dtype(f"u{dtype.itemsize}") if kind in UNSIGNED else dtype
    if dtype.kind not in "iuf" or dtype.itemsize < 4 or not isinstance(function, np.ufunc):
        return None
    return lambda words, index, numbers: function.at(words.view(seen), index, values[numbers].view(seen))


def combination(kind: int, dtype: np.dtype) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Returns a function (old, new) -> the new content of memory, for an atomic of this kind.

    All three are raw bits: unsigned integers of the dtype's size.
    """
    function, seen = ATOMICS[kind], np.dtype(f"u{dtype.itemsize}") if kind in UNSIGNED else dtype

    def combine(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return as_raw(function(wide(old.view(seen)), wide(new.view(seen))).astype(seen))

    return combine


@carries_out("tt.atomic_cas", stateful=True, access="atomic", others=(1,), stored=2)
def _compare_and_swap(operation: Operation) -> Callable:
    dtype, shape = dtype_of(operation.operand_types[1]), operation.operand_types[0].shape

    def run(frame: Frame, pointers: np.ndarray, expected: np.ndarray, values: np.ndarray) -> np.ndarray:
        lanes = lanes_of(frame, pointers, None, shape)
        wanted, raw = as_raw(lanes.of(expected)), as_raw(lanes.of(values))

        def change(old: np.ndarray, which: np.ndarray) -> np.ndarray:
            return np.where(old == wanted[which], raw[which], old)

        return change_atomically(frame, operation, lanes, dtype, change)

    return run


@carries_out("tt.atomic_load", stateful=True, access="atomic", mask=1)
def _atomic_load(operation: Operation) -> Callable:
    dtype, shape = dtype_of(operation.result_types[0]), operation.operand_types[0].shape

    def run(frame: Frame, pointers: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return change_atomically(
            frame, operation, lanes_of(frame, pointers, mask, shape), dtype, lambda old, which: old
        )

    return run


@carries_out("tt.atomic_store", stateful=True, access="atomic", stored=1, mask=2)
def _atomic_store(operation: Operation) -> Callable:
    dtype, shape = dtype_of(operation.operand_types[1]), operation.operand_types[0].shape

    def run(frame: Frame, pointers: np.ndarray, values: np.ndarray, mask: np.ndarray | None = None) -> None:
        lanes = lanes_of(frame, pointers, mask, shape)
        raw = as_raw(lanes.of(values))
        change_atomically(frame, operation, lanes, dtype, lambda old, which: raw[which])

    return run


@carries_out("tt.atomic_poll", stateful=True, access="atomic", others=(1, 2))
def _atomic_poll(operation: Operation) -> Callable:
    """Returns the function that carries out tt.atomic_poll, and raises TooLong where the awaited value never comes.

    Programs run one after another here, so the value is there at the first look or never.
    """
    dtype = dtype_of(operation.operand_types[1])

    def run(frame: Frame, pointers: np.ndarray, value: np.ndarray, *timeout: np.ndarray) -> np.ndarray:
        lanes = lanes_of(frame, pointers, None, ())
        seen = change_atomically(frame, operation, lanes, dtype, lambda old, which: old)
        while not timeout and not np.array_equal(seen, np.broadcast_to(value, seen.shape)):
            frame.batch.spend(1 << 16, 1, operation.place)
        return seen == value

    return run


# ---- the program and its grid --------------------------------------------------------------------------------------


@carries_out("tt.get_program_id", stateful=True)
def _program_id(operation: Operation) -> Callable:
    axis = int(operation.attributes["axis"])
    return lambda frame: frame.batch.program_id(axis)


@carries_out("tt.get_num_programs", stateful=True)
def _num_programs(operation: Operation) -> Callable:
    axis = int(operation.attributes["axis"])
    return lambda frame: np.array([frame.batch.grid[axis]], np.int32)


@carries_out("gpu.barrier", "ttg.barrier", "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents")
def _nothing(operation: Operation) -> Callable:
    return lambda: None
