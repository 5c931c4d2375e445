"""tt.extern_elementwise: the functions of NVIDIA's libdevice that triton.language.extra.libdevice offers, by symbol.

A symbol is `__nv_` and a name. Usually a name that ends in f takes float32, and the same name without f takes float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from grader.interpreter import special_functions
from grader.interpreter.dtypes import F64, Unsupported, dtype_of
from grader.interpreter.libdevice import bits, directed_rounding
from grader.interpreter.mathematics import inverse_root
from grader.interpreter.registry import Computed, carries_out
from grader.interpreter.rounding import SMALLEST_NORMAL, flushed, fused, to_integer
from grader.ttir.module import Operation


@carries_out("tt.extern_elementwise", approximate=True)
def _extern(op: Operation) -> Computed:
    symbol = str(op.attributes.get("symbol"))
    function = SYMBOLS.get(symbol)
    if function is None or op.attributes.get("libname") or op.attributes.get("libpath") or not op.result_types:
        raise Unsupported(f"the library function {symbol} is not known here yet")
    if function.operands != len(op.operand_types):
        raise Unsupported(f"the library function {symbol} with {len(op.operand_types)} operands is not known here")
    dtype, compute = dtype_of(op.result_types[0]), function.compute
    if symbol in WITH_SUBNORMALS:
        return lambda *xs: compute(*xs).astype(dtype, copy=False)
    return lambda *xs: flushed(compute(*map(flushed, xs)).astype(dtype, copy=False))


@carries_out("tt.elementwise_inline_asm")
def _inline_assembly(op: Operation) -> Computed:
    raise Unsupported("inline assembly. What tl's functions compute is")


# ---- functions of floats, whatever their size -------------------------------------------------------------------


def _fast_division(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns x / y; 0 where the divisor lies above 2^126, and NaN for an infinite dividend there (PTX ISA,
    div.approx.f32)."""
    return np.where(np.abs(y) > 2.0**126, np.where(np.isinf(x), np.nan, 0 * np.sign(x) * np.sign(y)), x / y).astype(
        x.dtype
    )


def _in_double(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Returns `function` with its operands converted to float64. The caller rounds the result to its own type."""
    return lambda *xs: function(*[x.astype(F64) for x in xs])


def _each(function: Callable[[float], float], at_pole: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that applies Python's `function` to each element: slow, for functions that are rare.

    An overflow gives infinity, a ValueError gives `at_pole` of the element; the result is float64.
    """

    def one(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf
        except ValueError:
            return at_pole(x)

    every = np.frompyfunc(one, 1, 1)
    return lambda x: np.array(every(x.astype(F64)), F64)


def _away_from_zero(x: np.ndarray) -> np.ndarray:
    """Returns x rounded to the nearest whole number, halves away from zero."""
    size = np.abs(x)
    whole = np.floor(size)
    return np.copysign(whole + (size - whole >= 0.5), x)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the remainder of IEEE: the quotient is rounded to nearest, halves to even."""
    divisor = np.abs(y)
    rest = np.abs(np.fmod(x, 2 * divisor))
    reduced = rest - divisor
    reduced = np.where(2 * reduced >= divisor, reduced - divisor, reduced)
    rest = np.where(2 * rest > divisor, reduced, rest)
    return np.copysign(1, x) * np.where(np.isinf(y) & np.isfinite(x), np.abs(x), rest)


def _exponent(x: np.ndarray) -> np.ndarray:
    """Returns floor(log2(|x|)) in x's type: -inf for 0, infinity for an infinity, NaN for NaN."""
    whole = np.frexp(x)[1].astype(x.dtype) - 1
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), whole, np.abs(x)))


def _integer_exponent(x: np.ndarray) -> np.ndarray:
    """Returns the exponent as an integer. As in CUDA, 0 and NaN give the least int32, and infinity the largest."""
    exponent = _exponent(x)
    return to_integer(np.where(np.isnan(x), -np.inf, exponent), -1 << 31, (1 << 31) - 1)


def _difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x <= y, 0, x - y)


def _of_pi(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the function x -> function(pi * x), exact at every multiple of 1/2."""

    def compute(x: np.ndarray) -> np.ndarray:
        x = np.fmod(x.astype(F64), 2)
        quarters = np.rint(2 * x)
        rest = function(np.pi * (x - quarters / 2) + np.pi / 2 * quarters)
        return np.where(x == quarters / 2, np.rint(rest), rest)

    return compute


def _next(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the float after x, toward y.

    From 0 this is the smallest normal number, as float32 counts subnormals as 0.
    """
    if x.dtype == F64:
        return np.nextafter(x, y)
    x, y = flushed(x), flushed(y)
    return np.where((x == 0) & (y != 0) & ~np.isnan(y), np.copysign(SMALLEST_NORMAL, y), np.nextafter(x, y))


def _norm(*xs: np.ndarray) -> np.ndarray:
    out = xs[0].astype(F64)
    for x in xs[1:]:
        out = np.hypot(out, x)
    return out


def _to_power(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.power(x.astype(F64), n)


def _scaled(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.ldexp(x, np.clip(n, -5000, 5000))


def _to_whole(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: to_integer(function(x), -1 << 63, (1 << 63) - 1)


_ONE: dict[str, Computed] = {  # functions of one operand
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": _of_pi(np.cos),
    "erf": special_functions.erf,
    "erfc": _in_double(special_functions.erfc),
    "erfcx": _in_double(special_functions.erfcx),
    "exp": np.exp,
    "exp10": _in_double(lambda x: np.power(10.0, x)),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fabs": np.abs,
    "floor": np.floor,
    "ilogb": _integer_exponent,
    "lgamma": _each(math.lgamma, lambda x: math.inf),
    "llrint": _to_whole(np.rint),
    "llround": _to_whole(_away_from_zero),
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logb": _exponent,
    "nearbyint": np.rint,
    "normcdf": _in_double(special_functions.normal),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rint": np.rint,
    "round": _away_from_zero,
    "rsqrt": inverse_root,
    "sin": np.sin,
    "sinh": np.sinh,
    "sinpi": _of_pi(np.sin),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "tgamma": _each(math.gamma, lambda x: math.nan if x else math.copysign(math.inf, x)),
    "trunc": np.trunc,
}
_TWO: dict[str, Computed] = {
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "fdim": _difference,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "ldexp": _scaled,
    "nextafter": _next,
    "pow": np.power,
    "powi": _to_power,
    "remainder": _in_double(_remainder),
    "rhypot": lambda x, y: 1 / _norm(x, y),
    "scalbn": _scaled,
}
_MORE: dict[str, tuple[int, Computed]] = {
    "fma": (3, fused),
    "norm3d": (3, _norm),
    "norm4d": (4, _norm),
    "rnorm3d": (3, lambda *xs: 1 / _norm(*xs)),
    "rnorm4d": (4, lambda *xs: 1 / _norm(*xs)),
}
# Functions with a separate name for each type. A GPU approximates the fast functions; here they are as close as others.
_NAMED: dict[str, tuple[int, Computed]] = {
    "fast_cosf": (1, np.cos),
    "fast_exp10f": (1, _ONE["exp10"]),
    "fast_expf": (1, np.exp),
    "fast_fdividef": (2, _fast_division),
    "fast_log10f": (1, np.log10),
    "fast_log2f": (1, np.log2),
    "fast_logf": (1, np.log),
    "fast_powf": (2, lambda x, y: np.exp2(y * np.log2(x))),  # NaN for a number below 0, and for 0 to the power 0
    "fast_sinf": (1, np.sin),
    "fast_tanf": (1, np.tan),
    "finitef": (1, np.isfinite),
    "frsqrt_rn": (1, inverse_root),
    "isfinited": (1, np.isfinite),
    "isinfd": (1, np.isinf),
    "isinff": (1, np.isinf),
    "isnand": (1, np.isnan),
    "isnanf": (1, np.isnan),
    "saturatef": (1, lambda x: np.fmin(np.fmax(x, 0), 1)),
    "signbitd": (1, np.signbit),
    "signbitf": (1, np.signbit),
}


class _Function:
    def __init__(self, operands: int, compute: Callable[..., np.ndarray]) -> None:
        self.operands, self.compute = operands, compute


def _symbols() -> dict[str, _Function]:
    of_floats = {name: (1, compute) for name, compute in _ONE.items()}
    of_floats |= {name: (2, compute) for name, compute in _TWO.items()} | _MORE
    table = of_floats | {f"{name}f": entry for name, entry in of_floats.items()}
    table |= _NAMED | bits.FUNCTIONS | directed_rounding.FUNCTIONS
    return {f"__nv_{name}": _Function(*entry) for name, entry in table.items()}


SYMBOLS: dict[str, _Function] = _symbols()
# Functions that do not replace float32's subnormal numbers by 0: seen on an H200 with Triton 3.6.
WITH_SUBNORMALS = {
    *(f"__nv_{name}" for name in bits.FUNCTIONS),
    *(f"__nv_{name}f" for name in (
        "copysign", "fabs", "fdim", "ilogb", "log", "log10", "log2", "logb", "nextafter", "pow", "tgamma",
    )),
}  # fmt: skip
