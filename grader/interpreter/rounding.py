"""Rounding that numpy lacks: in one step from float64, toward zero, to integers that saturate; and exact products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grader.interpreter.dtypes import BYTES, DTYPES, F32, F64, narrowed, wide

BF16, E5M2 = DTYPES["bf16"], DTYPES["f8E5M2"]
SMALLEST_NORMAL = np.finfo(np.float32).smallest_normal


def flushed(x: np.ndarray) -> np.ndarray:
    """Returns float32 with subnormal numbers replaced by 0 of the same sign; floats of other types as they are.

    Triton builds libdevice this way, and has the approximate instructions do it.
    """
    if x.dtype != F32:
        return x
    small = np.abs(x) < SMALLEST_NORMAL
    return np.where(small, np.copysign(F32.type(0), x), x) if small.any() else x


def flushing(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *xs: flushed(function(*map(flushed, xs)))


def to_odd(x: np.ndarray) -> np.ndarray:
    """Returns float64 as float32, with an odd last bit where the result is inexact.

    Rounding this to 22 bits or fewer gives the same as rounding once (Boldo and Melquiond, Emulation of FMA and
    correctly rounded sums, 2008).
    """
    near = x.astype(F32)
    back = near.astype(F64)
    bits = near.view(np.int32)
    nudged = np.where((np.abs(back) > np.abs(x)) & np.isfinite(x), bits - 1, bits)  # toward zero
    return np.where((back != x) & np.isfinite(x), nudged | 1, bits).view(F32)


def from_double(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns float64 rounded once, to nearest even, to any type of floats; 8 bits saturate."""
    return narrowed(to_odd(x), dtype) if dtype == BF16 or dtype in BYTES else x.astype(dtype, copy=False)


def in_double(x: np.ndarray) -> np.ndarray:
    """Returns integers as float64. From 2^53 on, 2^11 stands for their last 12 bits where these are not all 0.

    This is exact, and on the same side of each number of at most 24 bits, and of each half between two of them.
    """
    plain = x.astype(F64)
    if x.dtype.itemsize < 8:
        return plain
    last = x & 0xFFF
    return np.where(np.abs(plain) < 2.0**53, plain, (x - last).astype(F64) + np.where(last != 0, 2.0**11, 0))


def toward_zero(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns floats rounded toward zero to a narrower type. Too large a number becomes the largest finite number.

    Infinity stays where the type has one: Triton's way to e5m2 is cvt.rz.f16.f32, of which it drops 8 bits.
    """
    x = wide(x).astype(F64)
    near = from_double(x, dtype)
    bits = near.view(f"i{dtype.itemsize}")  # sign and magnitude: one less is one step toward zero
    out = np.where(np.abs(wide(near)) > np.abs(x), bits - 1, bits).view(dtype)
    return np.where(np.isinf(x), x.astype(dtype), out) if dtype == E5M2 else out


def to_integer(x: np.ndarray, low: int, high: int) -> np.ndarray:
    """Returns whole floats as integers that saturate at the bounds, in int64 (uint64 where `high` needs it).

    NaN becomes 0, or an integer with only the highest bit set if either side has 64 bits (PTX ISA, cvt).
    """
    dtype = np.dtype(np.int64) if high < 1 << 63 else np.dtype(np.uint64)
    no_number = (low or (high >> 1) + 1) if x.dtype == F64 or high >> 62 else 0
    x = wide(x).astype(F64)
    below, above, neither = x <= low, x >= high, np.isnan(x)  # a `high` of 64 bits becomes 2^63 or 2^64: still right
    out = np.where(below | above | neither, 0, x).astype(dtype)
    for where, value in ((below, low), (above, high), (neither, no_number)):
        np.copyto(out, dtype.type(value), where=where)
    return out


def two_sum(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rounded sum and its rounding error (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def two_product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rounded product of float64 and its rounding error (Dekker 1971); 0 where splitting would overflow."""
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    lost = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, np.where(np.isfinite(lost), lost, 0)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = x * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Returns x * y + z for floats of one type, rounded once.

    Up to float32 the product is exact in float64; the sum is rounded to 53 bits there before it is rounded to its own
    type, which differs from a single rounding about once in 2^29 times. In float64 the product's rounding error is
    added last, which differs about as rarely.
    """
    dtype = z.dtype
    if dtype != F64:
        x, y, z = (wide(v).astype(F64) for v in (x, y, z))
        return from_double(x * y + z, dtype)
    product, lost = two_product(x, y)
    total, also_lost = two_sum(product, z)
    rest = lost + also_lost
    total = np.where(np.isfinite(total) & (rest != 0), total + rest, total)  # keeps -0.0
    return np.where(np.isinf(z) & np.isfinite(x) & np.isfinite(y), z, total)  # whatever the product came to


# ---- in a direction ---------------------------------------------------------------------------------------------


def exact_product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns two float64 whose sum is the exact product of floats of one type."""
    if x.dtype == F64:
        return two_product(x, y)
    product = x.astype(F64) * y
    return product, np.zeros_like(product)


def directed(near: np.ndarray, lost: np.ndarray, direction: str) -> np.ndarray:
    """Returns the float next to the true value in a direction: rd down, ru up, rz toward zero.

    `near` is the nearest float; `lost` has the sign of true - `near`.
    """
    if direction == "rd":
        return np.where(lost < 0, np.nextafter(near, -np.inf), near)
    if direction == "ru":
        return np.where(lost > 0, np.nextafter(near, np.inf), near)
    return np.where(((near > 0) & (lost < 0)) | ((near < 0) & (lost > 0)), np.nextafter(near, 0), near)
