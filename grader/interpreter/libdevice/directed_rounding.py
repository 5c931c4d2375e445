"""libdevice's arithmetic and conversions with a rounding direction, by name without `__nv_`.

An entry is the number of operands, and the function that computes the result. A result is rounded to nearest first. The
sign of the rounding error then says whether a neighbour is the right result. Directions: rn to nearest, rz toward zero,
rd down, ru up.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from grader.interpreter.dtypes import F32, F64, unsigned
from grader.interpreter.rounding import directed, exact_product, fused, to_integer, two_sum

Function = Callable[..., np.ndarray]


def _in_direction(nearest: Function, lost: Function, direction: str) -> Function:
    """Returns the function that rounds the result of `nearest` in a direction.

    `lost` takes the operands and the nearest result, and returns a float64 with the sign of exact - nearest.
    """
    if direction == "rn":
        return nearest

    def compute(*xs: np.ndarray) -> np.ndarray:
        near = nearest(*xs)
        finite = np.isfinite(near)
        overflowed = np.where(np.logical_and.reduce(np.broadcast_arrays(*[np.isfinite(x) for x in xs])), -near, 0)
        return directed(near, np.where(finite, lost(*xs, near), overflowed), direction)

    return compute


def _lost_sum(x: np.ndarray, y: np.ndarray, near: np.ndarray) -> np.ndarray:
    return two_sum(x, y)[1]


def _lost_product(x: np.ndarray, y: np.ndarray, near: np.ndarray) -> np.ndarray:
    product, rest = exact_product(x, y)
    return (product - near) + rest


def _lost_quotient(x: np.ndarray, y: np.ndarray, near: np.ndarray) -> np.ndarray:
    product, rest = exact_product(near, y)
    return ((x - product) - rest) * np.copysign(1, y)


def _lost_root(x: np.ndarray, near: np.ndarray) -> np.ndarray:
    return _lost_quotient(x, near, near)


def _lost_fused(x: np.ndarray, y: np.ndarray, z: np.ndarray, near: np.ndarray) -> np.ndarray:
    product, rest = exact_product(x, y)
    total, more = two_sum(product, z.astype(F64))
    return (total - near) + (more + rest)


def _quotient_of_numbers(compute: Function) -> Function:
    """Returns `compute`, a quotient, corrected for a divisor of 0: infinite in every direction, or NaN for 0 / 0."""
    return lambda *xs: np.where(xs[-1] == 0, (xs[0] if len(xs) > 1 else 1) / xs[-1], compute(*xs))


def _inverse(x: np.ndarray) -> np.ndarray:
    return np.divide(1, x, dtype=x.dtype)


def _lost_inverse(x: np.ndarray, near: np.ndarray) -> np.ndarray:
    return _lost_quotient(np.ones_like(x), x, near)


def _of_opposites(compute: Function, negated: int) -> Function:
    """Returns a sum, or a difference (`negated`), rounded down: a result of 0 is -0.0, unless both terms are 0.0."""

    def down(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        total, other = compute(x, y), -y if negated else y
        both = (x == 0) & (other == 0) & ~np.signbit(x) & ~np.signbit(other)
        return np.where((total == 0) & ~both, -np.abs(total), total)

    return down


_ARITHMETIC: dict[str, tuple[int, Function, Function]] = {  # operands, nearest result, what is lost
    "add": (2, np.add, _lost_sum),
    "sub": (2, np.subtract, lambda x, y, near: _lost_sum(x, -y, near)),
    "mul": (2, np.multiply, _lost_product),
    "div": (2, np.divide, _lost_quotient),
    "rcp": (1, _inverse, _lost_inverse),
    "sqrt": (1, np.sqrt, _lost_root),
}


# ---- conversions ------------------------------------------------------------------------------------------------


def _lost_in_float(x: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Returns the rounding error of an integer of up to 64 bits, as a float64 whose sign is exact.

    The integer's two halves are exact in float64, and the upper half is near the result.
    """
    low = x & x.dtype.type(0xFFFFFFFF)
    return ((x - low).astype(F64) - near) + low.astype(F64)


def _to_float(dtype: np.dtype, without_sign: bool, direction: str) -> Function:
    def wide(x: np.ndarray) -> np.ndarray:
        return (unsigned(x) if without_sign else x).astype(np.uint64 if without_sign else np.int64)

    convert = _in_direction(lambda x: x.astype(dtype), _lost_in_float, direction)
    return lambda x: convert(wide(x))


_FLOATS: dict[str, np.dtype] = {"float": F32, "double": F64}
_TO_WHOLE: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_BOUNDS = {
    "int": (-1 << 31, (1 << 31) - 1),
    "uint": (0, (1 << 32) - 1),
    "ll": (-1 << 63, (1 << 63) - 1),
    "ull": (0, (1 << 64) - 1),
}


def _to_whole(direction: str, low: int, high: int) -> Function:
    rounded = _TO_WHOLE[direction]
    return lambda x: to_integer(rounded(x), low, high)


def _functions() -> dict[str, tuple[int, Function]]:
    table: dict[str, tuple[int, Function]] = {}
    for direction in _TO_WHOLE:
        for (name, (operands, nearest, lost)), letter in product(_ARITHMETIC.items(), "fd"):
            compute = _in_direction(nearest, lost, direction)
            if direction == "rd" and name in ("add", "sub"):
                compute = _of_opposites(compute, negated=name == "sub")
            if name in ("div", "rcp"):
                compute = _quotient_of_numbers(compute)
            table[f"{letter}{name}_{direction}"] = operands, compute
        for letter in ("", "f"):
            table[f"fma{letter}_{direction}"] = 3, _in_direction(fused, _lost_fused, direction)
        narrower = _in_direction(lambda x: x.astype(F32), lambda x, near: x - near, direction)
        table[f"double2float_{direction}"] = 1, narrower
        for (name, dtype), integer in product(_FLOATS.items(), _BOUNDS):
            table[f"{name}2{integer}_{direction}"] = 1, _to_whole(direction, *_BOUNDS[integer])
            table[f"{integer}2{name}_{direction}"] = 1, _to_float(dtype, integer[0] == "u", direction)
    return table


FUNCTIONS: dict[str, tuple[int, Function]] = _functions()
