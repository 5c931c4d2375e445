"""The arith dialect: arithmetic within one type, comparisons and selections.

Overflow, division by zero and similar cases have defined results here and raise nothing. The caller silences numpy's
warnings (np.errstate) and masks the results of inactive lanes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grader.interpreter.dtypes import NARROW, Unsupported, dtype_of, narrowed, over, unsigned, wide
from grader.interpreter.registry import Computed, carries_out
from grader.interpreter.rounding import fused
from grader.ttir.module import Operation

BOOL = np.dtype(bool)


def rounding_each(function: Callable[..., np.ndarray], dtype: np.dtype) -> Computed:
    """Returns `function` for floats of `dtype`. Types of 8 and 16 bits are computed in float32.

    Their operands are widened before `function`, and its result is rounded after it.
    """
    if dtype not in NARROW:
        return function

    def one(x: np.ndarray) -> np.ndarray:
        return narrowed(function(wide(x)), dtype)

    def two(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return narrowed(function(wide(x), wide(y)), dtype)

    def more(*xs: np.ndarray) -> np.ndarray:
        return narrowed(function(*[wide(x) for x in xs]), dtype)

    by_operands: dict[int | None, Computed] = {1: one, 2: two}
    return by_operands.get(getattr(function, "nin", None), more)


def elementwise(function: Callable[..., np.ndarray], *names: str, approximate: bool = False) -> None:
    """Registers `function`, which computes floats of one type, for the operations `names`."""

    @carries_out(*names, approximate=approximate)
    def make(op: Operation) -> Computed:
        return rounding_each(function, dtype_of(op.result_types[0]))


def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns x - trunc(x / y) * y, computed from the quotient as on a GPU; x where y is infinite.

    It is inexact where the quotient is large, and NaN or infinite where the quotient is infinite.
    """
    return np.where(np.isinf(y), x, fused(-np.trunc(x / y), y, x))


def _with_ordered_zeros(function: np.ufunc, of_zeros: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Returns `function`, a maximum or a minimum, with -0.0 less than 0.0; numpy may return either.

    `of_zeros` computes the result for two zeros.
    """

    def compute(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        zeros = (x == 0) & (y == 0)
        return np.where(zeros, of_zeros(x, y), function(x, y)) if zeros.any() else function(x, y)

    return compute


def _largest_zero(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x + y


def _smallest_zero(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -(-x - y)


larger, maximum = (_with_ordered_zeros(function, _largest_zero) for function in (np.fmax, np.maximum))
smaller, minimum = (_with_ordered_zeros(function, _smallest_zero) for function in (np.fmin, np.minimum))
elementwise(np.add, "arith.addf")
elementwise(np.subtract, "arith.subf")
elementwise(np.multiply, "arith.mulf")
elementwise(np.divide, "arith.divf", approximate=True)
elementwise(remainder, "arith.remf", approximate=True)
elementwise(np.negative, "arith.negf")
elementwise(larger, "arith.maxnumf")
elementwise(smaller, "arith.minnumf")
elementwise(maximum, "arith.maximumf")
elementwise(minimum, "arith.minimumf")


# ---- integers ---------------------------------------------------------------------------------------------------

# Integers of one bit: a sum is an exclusive or, and a bit that is set is the signed number -1.
ON_BITS: dict[str, np.ufunc] = {
    "arith.addi": np.logical_xor,
    "arith.subi": np.logical_xor,
    "arith.muli": np.logical_and,
    "arith.maxsi": np.logical_and,
    "arith.minsi": np.logical_or,
    "arith.maxui": np.logical_or,
    "arith.minui": np.logical_and,
    "arith.andi": np.logical_and,
    "arith.ori": np.logical_or,
    "arith.xori": np.logical_xor,
}


def _first(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns x, broadcast with y: the result of every division and shift of single bits, where it is defined."""
    return np.logical_or(x, np.zeros_like(y))


def integers(function: Computed, name: str, without_sign: bool = False) -> None:
    """Registers a function of two integers of one type. `without_sign`: it takes and returns unsigned integers."""

    @carries_out(name)
    def make(op: Operation) -> Computed:
        dtype = dtype_of(op.result_types[0])
        if dtype == BOOL:
            return ON_BITS.get(name, _first)
        if not without_sign:
            return function

        def on_unsigned(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return function(unsigned(x), unsigned(y)).view(dtype)

        return on_unsigned


def truncating_division(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns x / y rounded toward zero, as in C. x / 0 is 0, and the least integer divided by -1 stays as it is."""
    quotient = np.floor_divide(x, y)
    if x.min() < 0 or y.min() < 0:
        inexact = (quotient * y != x) & (y != 0)
        quotient = quotient + (inexact & ((x < 0) != (y < 0)))
    return quotient


def truncating_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the remainder with the sign of the dividend, as in C; the dividend itself where the divisor is 0."""
    return x - truncating_division(x, y) * y


def unsigned_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x - np.floor_divide(x, y) * y


integers(np.add, "arith.addi")
integers(np.subtract, "arith.subi")
integers(np.multiply, "arith.muli")
integers(truncating_division, "arith.divsi")
integers(truncating_remainder, "arith.remsi")
integers(np.floor_divide, "arith.divui", without_sign=True)
integers(unsigned_remainder, "arith.remui", without_sign=True)
integers(np.maximum, "arith.maxsi")
integers(np.minimum, "arith.minsi")
integers(np.maximum, "arith.maxui", without_sign=True)
integers(np.minimum, "arith.minui", without_sign=True)
integers(np.bitwise_and, "arith.andi")
integers(np.bitwise_or, "arith.ori")
integers(np.bitwise_xor, "arith.xori")
# numpy defines shifts by too many bits, or by a negative number: 0, or the sign in every bit.
integers(np.left_shift, "arith.shli")
integers(np.right_shift, "arith.shrsi")
integers(np.right_shift, "arith.shrui", without_sign=True)


# ---- comparisons and choices ------------------------------------------------------------------------------------

_BY_SIZE = (np.less, np.less_equal, np.greater, np.greater_equal)
# In the order of MLIR's numbers: eq ne slt sle sgt sge ult ule ugt uge.
_INTEGER_COMPARISONS: tuple[np.ufunc, ...] = (np.equal, np.not_equal, *_BY_SIZE, *_BY_SIZE)


@carries_out("arith.cmpi")
def _compare_integers(op: Operation) -> Computed:
    number = _predicate(op, len(_INTEGER_COMPARISONS))
    comparison = _INTEGER_COMPARISONS[number]
    one_bit = dtype_of(op.operand_types[0]) == BOOL
    if number < 2 or (number < 6 and not one_bit):
        return comparison
    if number < 6:  # a signed bit that is set is -1, so the order is reversed
        return lambda x, y: comparison(y, x)
    return lambda x, y: comparison(unsigned(x), unsigned(y))


def _predicate(op: Operation, count: int) -> int:
    number = op.attributes.get("predicate")
    if not isinstance(number, int) or not 0 <= number < count:
        raise Unsupported(f"predicate {number} of operation {op.name} is not known here")
    return number


def _never(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)


def _ordered(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x == x) & (y == y)


def _not(comparison: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda x, y: np.logical_not(comparison(x, y))


# In the order of MLIR's numbers: false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true.
# numpy's comparisons are ordered, except for !=.
_FLOAT_COMPARISONS: tuple[Callable[..., np.ndarray], ...] = (
    _never,
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    lambda x, y: (x < y) | (x > y),
    _ordered,
    lambda x, y: ~((x < y) | (x > y)),
    _not(np.less_equal),
    _not(np.less),
    _not(np.greater_equal),
    _not(np.greater),
    np.not_equal,
    _not(_ordered),
    _not(_never),
)


@carries_out("arith.cmpf")
def _compare_floats(op: Operation) -> Computed:
    comparison = _FLOAT_COMPARISONS[_predicate(op, len(_FLOAT_COMPARISONS))]
    if dtype_of(op.operand_types[0]) not in NARROW:
        return comparison
    return lambda x, y: comparison(wide(x), wide(y))


@carries_out("arith.select")
def _select(op: Operation) -> Computed:
    rank = len(op.result_types[0].shape)
    if not rank or op.operand_types[0].shape:
        return np.where
    return lambda condition, x, y: np.where(over(condition, rank), x, y)
