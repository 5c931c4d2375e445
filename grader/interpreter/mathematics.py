"""The math dialect, and Triton's own functions of numbers, element by element.

numpy's functions are within an ulp or a few of the true value. A GPU's are as close, but round differently: their
entries in the registry say `approximate`.
"""

from __future__ import annotations

import numpy as np

from grader.interpreter.arithmetic import BOOL, elementwise, larger, maximum, minimum, rounding_each, smaller
from grader.interpreter.dtypes import Unsupported, dtype_of, unsigned
from grader.interpreter.registry import Computed, carries_out
from grader.interpreter.rounding import flushing, fused
from grader.interpreter.special_functions import erf
from grader.ttir.module import Operation


def inverse_root(x: np.ndarray) -> np.ndarray:
    return np.divide(1, np.sqrt(x), dtype=x.dtype)


_EXACT: dict[str, Computed] = {
    "ceil": np.ceil,
    "floor": np.floor,
}
_APPROXIMATE: dict[str, Computed] = {
    "cos": np.cos,
    "erf": erf,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": inverse_root,
    "sin": np.sin,
    "sqrt": np.sqrt,
}
for _name, _function in _EXACT.items():
    elementwise(flushing(_function), f"math.{_name}")
for _name, _function in _APPROXIMATE.items():
    _on_a_gpu = _function if _name.startswith("log") else flushing(_function)
    elementwise(_on_a_gpu, f"math.{_name}", approximate=True)
elementwise(np.abs, "math.absf")
elementwise(np.sqrt, "tt.precise_sqrt")
elementwise(np.divide, "tt.precise_divf")
elementwise(np.divide, "tt.approx_divf", approximate=True)


@carries_out("math.fma")
def _fma(op: Operation) -> Computed:
    return fused


@carries_out("math.absi")
def _absolute(op: Operation) -> Computed:
    return np.abs


NO_NAN, ALL_NAN = 0, 0xFFFF  # propagateNan's numbers


@carries_out("tt.clampf")
def _clamp(op: Operation) -> Computed:
    """Returns the function that keeps x between two bounds.

    NaN stays (ALL_NAN), or becomes the lower bound (NO_NAN).
    """
    kept = op.attributes.get("propagateNan", NO_NAN)
    if kept not in (NO_NAN, ALL_NAN):
        raise Unsupported(f"propagateNan {kept} of operation {op.name} is not known here yet")
    largest, smallest = (maximum, minimum) if kept else (larger, smaller)
    return rounding_each(lambda x, low, high: smallest(largest(x, low), high), dtype_of(op.result_types[0]))


@carries_out("tt.mulhiui")
def _high_product(op: Operation) -> Computed:
    dtype = dtype_of(op.result_types[0])
    if dtype == BOOL:
        raise Unsupported(f"operation {op.name} on i1 is not known here")
    return lambda x, y: high_product(unsigned(x), unsigned(y)).view(dtype)


def high_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the upper half of the product of two unsigned integers of one type."""
    dtype = x.dtype
    if dtype.itemsize < 8:
        bits = 8 * dtype.itemsize
        return (np.multiply(x, y, dtype=np.uint64) >> np.uint64(bits)).astype(dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x_high, x_low, y_high, y_low = x >> half, x & low, y >> half, y & low
    middle = x_high * y_low + (x_low * y_low >> half)
    other = x_low * y_high + (middle & low)
    return x_high * y_high + (middle >> half) + (other >> half)
