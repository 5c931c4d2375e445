"""libdevice's functions of integers and bits, by name without `__nv_`: the number of operands, and what computes them.

Operands are signed arrays, as all integers are here. Functions whose names begin with u read them as unsigned.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grader.interpreter.dtypes import unsigned
from grader.interpreter.mathematics import high_product


def _on_unsigned(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Returns `function` on operands read as unsigned, its result read as the first operand's type of the same size."""
    return lambda *xs: function(*[unsigned(x) for x in xs]).view(xs[0].dtype)


def _high_signed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the upper half of the signed product.

    It is the upper half of the unsigned product, less each operand where the other operand is negative.
    """
    high = high_product(unsigned(x), unsigned(y)).view(x.dtype)
    return high - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)


def _leading_zeros(x: np.ndarray) -> np.ndarray:
    return 8 * x.dtype.itemsize - _length(unsigned(x))


def _length(x: np.ndarray) -> np.ndarray:
    """Returns the number of bits of unsigned integers without leading zeros (int32)."""
    x = x.copy()
    for shift in (1, 2, 4, 8, 16, 32):  # every bit below the highest becomes 1 as well
        x |= x >> min(shift, 8 * x.dtype.itemsize - 1)
    return _ones(x)


_ONES = np.array([number.bit_count() for number in range(256)], np.int32)


def _ones(x: np.ndarray) -> np.ndarray:
    """Returns the number of bits of each integer that are set (int32)."""
    octets = np.ascontiguousarray(x)[..., None].view(np.uint8)
    return np.take(_ONES, octets).sum(axis=-1, dtype=np.int32)


def _first_set(x: np.ndarray) -> np.ndarray:
    """Returns the position of the lowest bit that is set, counted from 1; 0 for 0."""
    return _length(unsigned(x & -x))


def _reversed_bits(x: np.ndarray) -> np.ndarray:
    size = x.dtype.itemsize
    octets = np.ascontiguousarray(x)[..., None].view(np.uint8)[..., ::-1]
    bits = np.unpackbits(octets, axis=-1, bitorder="little")
    return np.packbits(bits, axis=-1, bitorder="big").reshape(*x.shape, size).view(x.dtype)[..., 0]


def _permuted(x: np.ndarray, y: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Returns four of the eight bytes of y and x, where x is the lower half, each chosen by a group of 4 bits.

    The lower 3 bits of a group choose the byte. If the 4th bit is set, the byte's sign bit fills the byte.
    """
    both = unsigned(x).astype(np.uint64) | unsigned(y).astype(np.uint64) << np.uint64(32)
    chosen = unsigned(selector).astype(np.uint64)
    out = np.zeros(np.broadcast_shapes(both.shape, chosen.shape), np.uint64)
    for place in range(4):
        group = chosen >> np.uint64(4 * place)
        octet = both >> (group & np.uint64(7)) * np.uint64(8) & np.uint64(255)
        sign = np.where(octet & np.uint64(128), np.uint64(255), np.uint64(0))
        out |= np.where(group & np.uint64(8), sign, octet) << np.uint64(8 * place)
    return out.astype(np.uint32).view(np.int32)


def _low_24(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the product of the lower 24 bits of each operand, read as signed."""
    return ((x << 8) >> 8) * ((y << 8) >> 8)


def _low_24_unsigned(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x & 0xFFFFFF) * (y & 0xFFFFFF)


def _distance(x: np.ndarray, y: np.ndarray, start: np.ndarray) -> np.ndarray:
    return np.where(x > y, x - y, y - x) + start


def _mean(up: int, dtype: type) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Returns the function (x, y) -> (x + y + up) / 2, rounded down, computed without overflow in `dtype`."""
    return lambda x, y: ((x.astype(dtype) + y + up) >> 1).astype(x.dtype)


def _two_halves(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    return ((high.astype(np.int64) << 32) | unsigned(low)).view(np.float64)


def _high_half(x: np.ndarray) -> np.ndarray:
    return x.view(np.int64) >> 32


def _rough_inverse(x: np.ndarray) -> np.ndarray:
    """Returns 1 / x with the lower 32 bits set to 0."""
    bits = (1 / x).view(np.int64)
    return (bits & np.int64(-1 << 32)).view(np.float64)


def _as(dtype: type) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: x.view(dtype)


FUNCTIONS: dict[str, tuple[int, Callable[..., np.ndarray]]] = {
    "abs": (1, np.abs),
    "brev": (1, _reversed_bits),
    "brevll": (1, _reversed_bits),
    "byte_perm": (3, _permuted),
    "clz": (1, _leading_zeros),
    "clzll": (1, _leading_zeros),
    "double2hiint": (1, _high_half),
    "double2loint": (1, lambda x: x.view(np.int64)),
    "double_as_longlong": (1, _as(np.int64)),
    "ffs": (1, _first_set),
    "ffsll": (1, _first_set),
    "float_as_int": (1, _as(np.int32)),
    "float_as_uint": (1, _as(np.int32)),
    "hadd": (2, _mean(0, np.int64)),
    "hiloint2double": (2, _two_halves),
    "int_as_float": (1, _as(np.float32)),
    "llabs": (1, np.abs),
    "longlong_as_double": (1, _as(np.float64)),
    "mul24": (2, _low_24),
    "mul64hi": (2, _high_signed),
    "mulhi": (2, _high_signed),
    "popc": (1, _ones),
    "popcll": (1, _ones),
    "rcp64h": (1, _rough_inverse),
    "rhadd": (2, _mean(1, np.int64)),
    "sad": (3, _distance),
    "uhadd": (2, _on_unsigned(_mean(0, np.uint64))),
    "uint_as_float": (1, _as(np.float32)),
    "umul24": (2, _on_unsigned(_low_24_unsigned)),
    "umul64hi": (2, _on_unsigned(high_product)),
    "umulhi": (2, _on_unsigned(high_product)),
    "urhadd": (2, _on_unsigned(_mean(1, np.uint64))),
    "usad": (3, _on_unsigned(_distance)),
}
