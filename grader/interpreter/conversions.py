"""Conversions from one type to another.

numpy converts most types as a GPU does. Where it does not (a narrow float, a rounding toward zero, an integer that
saturates), the functions of rounding.py stand in, so that results agree with a GPU's to the bit.
"""

from __future__ import annotations

import numpy as np

from grader.interpreter.dtypes import BYTES, F64, NARROW, Unsupported, dtype_of, is_float, narrowed, unsigned, wide
from grader.interpreter.registry import Computed, carries_out
from grader.interpreter.rounding import from_double, in_double, to_integer, toward_zero
from grader.ttir.module import Operation

BOOL = np.dtype(bool)
TOWARD_ZERO, NEAREST = 0, 1  # tt.fp_to_fp's numbers


def _types(op: Operation) -> tuple[np.dtype, np.dtype]:
    return dtype_of(op.operand_types[0]), dtype_of(op.result_types[0])


def same(x: np.ndarray) -> np.ndarray:
    return x


def float_to_float(source: np.dtype, target: np.dtype) -> Computed:
    """Returns the function that converts floats, and rounds to nearest even where the target is narrower."""
    if source == target:
        return same
    if source == F64:
        return lambda x: from_double(x, target)
    if target in NARROW:
        return lambda x: narrowed(wide(x), target)
    if source in BYTES:
        return lambda x: wide(x).astype(target, copy=False)
    return lambda x: x.astype(target)


@carries_out("arith.extf", "arith.truncf")
def _resize_float(op: Operation) -> Computed:
    return float_to_float(*_types(op))


@carries_out("tt.fp_to_fp")
def _float_to_float(op: Operation) -> Computed:
    source, target = _types(op)
    rounding = op.attributes.get("rounding", NEAREST)
    if rounding == NEAREST or target.itemsize >= source.itemsize:
        return float_to_float(source, target)
    if rounding != TOWARD_ZERO:
        raise Unsupported(f"rounding {rounding} of operation {op.name} is not known here yet")
    return lambda x: toward_zero(x, target)


# ---- integers ---------------------------------------------------------------------------------------------------


def _from_bool(target: np.dtype) -> Computed:
    """Returns the function that converts a bit to the signed number that it stands for: 0 or -1."""
    return lambda x: np.negative(x.view(np.int8)).astype(target, copy=False)


@carries_out("arith.extsi", "arith.trunci")
def _resize_integer(op: Operation) -> Computed:
    source, target = _types(op)
    if source == target:
        return same
    if target == BOOL:
        return lambda x: np.bitwise_and(x, 1) != 0
    return _from_bool(target) if source == BOOL else lambda x: x.astype(target)


@carries_out("arith.extui")
def _extend_unsigned(op: Operation) -> Computed:
    source, target = _types(op)
    if source == BOOL:
        return lambda x: x.astype(target)
    return lambda x: unsigned(x).astype(target)


# ---- between integers and floats --------------------------------------------------------------------------------


def integer_to_float(source: np.dtype, target: np.dtype) -> Computed:
    """Returns the function that converts integers, and rounds once, to nearest even: as PTX's cvt.rn.bf16.s64 does.

    On the way to a narrow type an integer of 16 bits is exact in float32, an integer of 32 bits in float64.
    """
    if target in NARROW and source.itemsize > 2:
        return lambda x: from_double(in_double(x), target)
    if target in NARROW:
        return lambda x: narrowed(x.astype(np.float32), target)
    return lambda x: x.astype(target)


@carries_out("arith.sitofp")
def _signed_to_float(op: Operation) -> Computed:
    source, target = _types(op)
    return _from_bool(target) if source == BOOL else integer_to_float(source, target)


@carries_out("arith.uitofp")
def _unsigned_to_float(op: Operation) -> Computed:
    source, target = _types(op)
    convert = integer_to_float(source, target)
    return lambda x: convert(unsigned(x))


@carries_out("arith.fptosi", "arith.fptoui")
def _float_to_integer(op: Operation) -> Computed:
    """Returns the function that rounds floats toward zero. Numbers that are too large saturate, as on the hardware.

    The hardware converts to 16 bits or more; for an integer of 8 bits it drops the upper bits after that.
    """
    _, target = _types(op)
    bits = 8 * max(target.itemsize, 2)
    if op.name == "arith.fptosi":
        low, high = -1 << bits - 1, (1 << bits - 1) - 1
    else:
        low, high = 0, (1 << bits) - 1
    most = min(high, (1 << 63) - 1)  # the most that numpy converts

    def convert(x: np.ndarray) -> np.ndarray:
        plain = wide(x)
        if plain.min() > low - 1 and plain.max() < most:  # false also where there is NaN
            return plain.astype(target if target.itemsize > 2 and low else np.int64).astype(target, copy=False)
        return to_integer(np.trunc(plain), low, high).astype(target)

    return convert


@carries_out("tt.bitcast", "arith.bitcast")
def _same_bits(op: Operation) -> Computed:
    source, target = _types(op)
    if source == target:
        return same
    if source.itemsize != target.itemsize or BOOL in (source, target):
        raise Unsupported(f"operation {op.name} from {source} to {target} is not known here")
    return lambda x: x.view(target)


@carries_out("tt.ptr_to_int", "tt.int_to_ptr")
def _pointer_bits(op: Operation) -> Computed:
    source, target = _types(op)
    if is_float(source) or is_float(target):
        raise Unsupported(f"operation {op.name} from {source} to {target} is not known here")
    return same if source == target else lambda x: x.astype(target)
