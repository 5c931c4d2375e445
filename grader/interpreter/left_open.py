"""What the language leaves open, and the other outcome of each: another order, another quotient of zero, one rounding.

The text of a kernel does not fix what comes out of these operations, and one GPU differs here from another, or from
the plain outcome of the interpreter. A call's second run takes the other outcome of all of them. A kernel that depends
on either is right by luck.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grader.interpreter import registry
from grader.interpreter.arithmetic import BOOL
from grader.interpreter.buffers import BIAS, SHIFT
from grader.interpreter.dtypes import dtype_of, is_float, spelled_out
from grader.interpreter.reductions import axis_of, combine, in_front, whole_function
from grader.interpreter.registry import Computed, Region
from grader.interpreter.rounding import fused
from grader.ttir.module import Operation
from grader.wire.messages import LeftOpen, OpenKind

# Addresses as a GPU's allocations have them: alike in their upper bits, each a multiple of 512 bytes.
ADDRESSES, ROOM_BITS, MOST_NUMBERS = 0x7E00_0000_0000, 34, 64


@dataclass(eq=False)
class OtherOutcomes:
    """The choice of the other outcomes for a kernel. `only`: the kind and the line of the only operations that take
    theirs; None: all do. `contracts`: the compiler may round a * b + c once. `seed`: of the addresses.

    `taken`: what was left open in the kernel, and comes out otherwise.
    """

    seed: int
    only: tuple[str, int] | None = None
    contracts: bool = True
    taken: set[LeftOpen] = field(default_factory=set)

    def of(self, operation: Operation, *evaluate: Region) -> Computed | None:
        """Returns the function that computes the other outcome; None where the operation leaves nothing open."""
        kind, make = MAKERS.get(operation.name, ("", _nothing))
        if not kind or self.only not in (None, (kind, operation.place.line)):
            return None
        if (other := make(operation, self, *evaluate)) is not None:
            rounds = kind == OpenKind.COMBINATION and any(is_float(dtype_of(one)) for one in operation.result_types)
            self.taken.add(LeftOpen(kind, operation.place.line, rounds))
        return other

    def contracted(self, operation: Operation, at: int) -> Computed | None:
        """Returns the function of the factors and the other operand that computes a sum or a difference of floats,
        whose operand number `at` is a product, with one rounding; None where the compiler may not do so."""
        if not self.contracts or self.only not in (None, (OpenKind.CONTRACTION, operation.place.line)):
            return None
        self.taken.add(LeftOpen(OpenKind.CONTRACTION, operation.place.line, rounds=True))
        if operation.name == "arith.addf":
            return fused
        return (lambda x, y, z: fused(x, y, -z)) if at == 0 else (lambda x, y, z: fused(-x, y, z))

    @property
    def numbers(self) -> np.ndarray:
        """The order in which the parameters' memory lies, drawn from the seed."""
        return np.random.default_rng(self.seed).permutation(MOST_NUMBERS)


def products_in(operations: list[Operation]) -> dict[int, Operation]:
    """Returns the products of floats among the operations of a function, by the numbers of their results."""
    return {op.results[0]: op for op in operations if op.name == "arith.mulf"}


def _nothing(*_: Any) -> None:
    return None


def _cat(operation: Operation, other: OtherOutcomes) -> Computed | None:
    first, second = operation.operand_types
    plain = registry.ENTRIES[operation.name].make(operation)
    return (lambda x, y: plain(y, x)) if first.shape == second.shape else None


def _reshape(operation: Operation, other: OtherOutcomes) -> Computed | None:
    if not operation.attributes.get("allow_reorder", False):
        return None
    plain, shape = registry.ENTRIES[operation.name].make(operation), operation.result_types[0].shape
    backward = (slice(None), *[slice(None, None, -1)] * len(shape))
    return lambda x: spelled_out(plain(x), shape)[backward]


def _division(operation: Operation, other: OtherOutcomes) -> Computed | None:
    """Returns the division whose quotient of 0 has all bits set, as on an H200."""
    if dtype_of(operation.result_types[0]) == BOOL:
        return None
    plain = registry.ENTRIES[operation.name].make(operation)

    def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        quotient, is_zero = plain(x, y), y == 0
        return np.where(is_zero, ~np.zeros_like(quotient), quotient) if is_zero.any() else quotient

    return divide


def _reduce(operation: Operation, other: OtherOutcomes, evaluate: Region) -> Callable | None:
    """Returns the reduction that combines quarters one after the other, then neighbours, the later one first.

    A GPU's thread combines its own elements one after the other, and threads exchange theirs; the interpreter combines
    half with half.
    """
    if whole_function(operation) is not None:
        return None
    (axis, size), single = axis_of(operation), len(operation.operand_types) == 1

    def reduce(*xs: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        parts, rest = in_front(xs, axis, size)
        if size >= 4:
            first, *others = ([x[at : at + size // 4] for x in parts] for at in range(0, size, size // 4))
            parts = functools.reduce(lambda one, other: combine(evaluate, one, other), others, first)
        while len(parts[0]) > 1:
            parts = combine(evaluate, [x[1::2] for x in parts], [x[0::2] for x in parts])
        out = tuple(x.reshape(rest) for x in parts)
        return out[0] if single else out

    return reduce


def _scan(operation: Operation, other: OtherOutcomes, evaluate: Region) -> Callable | None:
    """Returns the scan that joins ever longer blocks, each element of the second with the last of the first.

    The algorithm is in Sklansky, Conditional-sum addition logic, 1960.
    """
    if whole_function(operation) is not None:
        return None
    (axis, size), single = axis_of(operation), len(operation.operand_types) == 1
    backward = bool(operation.attributes.get("reverse", False))

    def scan(*xs: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        parts, rest = in_front(xs, axis, size)
        parts = [np.array(x[::-1] if backward else x) for x in parts]
        length = 1
        while length < size:
            blocks = [x.reshape(-1, 2 * length, x.shape[1]) for x in parts]
            ends = [np.repeat(x[:, length - 1 : length], length, axis=1).reshape(-1, x.shape[2]) for x in blocks]
            later = [x[:, length:].reshape(-1, x.shape[2]) for x in blocks]
            for x, new in zip(blocks, combine(evaluate, ends, later)):
                x[:, length:] = new.reshape(len(x), length, -1)
            length *= 2
        parts = [x[::-1] if backward else x for x in parts]
        out = tuple(np.moveaxis(x.reshape(size, *rest), 0, axis) for x in parts)
        return out[0] if single else out

    return scan


def _to_number(operation: Operation, other: OtherOutcomes) -> Computed:
    """Returns the function that tells a pointer's address as another place in memory."""
    places = other.numbers

    def tell(pointers: np.ndarray) -> np.ndarray:
        number = (pointers >> SHIFT) - 1
        offset = (pointers & ((1 << SHIFT) - 1)) - BIAS
        known = (number >= 0) & (number < MOST_NUMBERS)
        place = places[np.where(known, number, 0)].astype(np.int64)
        return np.where(known, ADDRESSES + (place << ROOM_BITS) + (1 << ROOM_BITS - 1) + offset, pointers)

    return tell


def _to_pointer(operation: Operation, other: OtherOutcomes) -> Computed:
    """Returns the function that makes pointers of such addresses."""
    numbers = np.argsort(other.numbers)

    def point(addresses: np.ndarray) -> np.ndarray:
        addresses = addresses.astype(np.int64)
        place = (addresses - ADDRESSES) >> ROOM_BITS
        known = (place >= 0) & (place < MOST_NUMBERS)
        number = numbers[np.where(known, place, 0)].astype(np.int64)
        offset = addresses - ADDRESSES - (place << ROOM_BITS) - (1 << ROOM_BITS - 1)
        return np.where(known, ((number + 1) << SHIFT | BIAS) + offset, addresses)

    return point


MAKERS: dict[str, tuple[OpenKind, Callable[..., Callable | None]]] = {
    "tt.cat": (OpenKind.CAT, _cat),
    "tt.reshape": (OpenKind.RESHAPE, _reshape),
    "arith.divsi": (OpenKind.DIVISION, _division),
    "arith.divui": (OpenKind.DIVISION, _division),
    "tt.reduce": (OpenKind.COMBINATION, _reduce),
    "tt.scan": (OpenKind.COMBINATION, _scan),
    "tt.ptr_to_int": (OpenKind.ADDRESS, _to_number),
    "tt.int_to_ptr": (OpenKind.ADDRESS, _to_pointer),
}
