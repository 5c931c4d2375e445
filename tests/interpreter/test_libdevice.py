"""libdevice's functions by symbol, against Python's math, torch and exact fractions."""

from __future__ import annotations

import inspect
import math
import re
import statistics
from fractions import Fraction

import numpy as np
import pytest
from triton.language.extra.cuda import libdevice as offered

from grader.interpreter import special_functions
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.libdevice.symbols import SYMBOLS
from tests.interpreter.made import compute, operation, prepare

RANDOM = np.random.default_rng(3)


def call(symbol: str, target: str, *values, sources: str = "") -> np.ndarray:
    names = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}
    arrays = [np.atleast_1d(value) for value in values]
    types = " ".join(f"8x{names[str(x.dtype)]}" for x in arrays)
    out = compute(
        "tt.extern_elementwise",
        types,
        f"8x{target}",
        *arrays,
        symbol=f"__nv_{symbol}",
        libname="",
        libpath="",
        pure=True,
    )
    assert out.dtype == np.dtype({"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8"}[target])
    return out


# Bessel functions and inverses of distribution functions: no exercise has a use for them.
LEFT_OUT = {
    f"__nv_{name}{of}"
    for name in [
        "cyl_bessel_i0",
        "cyl_bessel_i1",
        "erfcinv",
        "erfinv",
        "j0",
        "j1",
        "jn",
        "normcdfinv",
        "y0",
        "y1",
        "yn",
    ]
    for of in ("", "f")
}


def test_every_other_offered_function_is_there():
    assert set(re.findall(r"__nv_\w+", inspect.getsource(offered))) - set(SYMBOLS) == LEFT_OUT


OFFERED = [
    found
    for found in re.findall(
        r'((?:core\.dtype\("\w+"\),\s*)+)\s*\)\s*:\s*\("(\w+)",\s*core\.dtype\("(\w+)"\)',
        inspect.getsource(offered),
    )
    if found[1] not in LEFT_OUT
]
ELEMENTS = {"fp32": "f32", "fp64": "f64", "int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64"}


@pytest.mark.parametrize("given, symbol, target", OFFERED, ids=[symbol for _, symbol, _ in OFFERED])
def test_every_offered_function_yields_its_type(given, symbol, target):
    elements = [ELEMENTS[name] for name in re.findall(r'"(\w+)"', given)]
    kinds = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}
    shapes = [(2, 4), (1, 4), (2, 1), (1, 1)]
    values = [RANDOM.uniform(0, 1, shape).astype(kinds[element]) for shape, element in zip(shapes, elements)]
    types = " ".join(f"4x{element}" for element in elements)
    out = compute("tt.extern_elementwise", types, f"4x{ELEMENTS[target]}", *values, symbol=symbol)
    assert out.dtype == kinds[ELEMENTS[target]] and out.shape == (2, 4)


def test_what_is_not_known_is_named():
    for attributes in (
        {"symbol": "__nv_new"},
        {"symbol": "__nv_j0f"},
        {"symbol": "__nv_expf", "libpath": "/tmp/mine.bc"},
        {},
    ):
        with pytest.raises(Unsupported, match="library function"):
            prepare(operation("tt.extern_elementwise", "8xf32", "8xf32", **attributes))
    with pytest.raises(Unsupported, match="2 operands"):
        prepare(operation("tt.extern_elementwise", "8xf32 8xf32", "8xf32", symbol="__nv_expf"))
    with pytest.raises(Unsupported, match="inline assembly"):
        prepare(operation("tt.elementwise_inline_asm", "", "i32", asm_string="mov.u32 $0, %smid;", constraints="=r"))


# ---- special functions ------------------------------------------------------------------------------------------


def each(function, x) -> np.ndarray:
    return np.array([function(float(value)) for value in x])


@np.errstate(all="ignore")
def test_erf_and_its_relatives():
    x = np.concatenate([np.linspace(-7, 7, 20001), [0.46875, 4.0, np.inf, -np.inf]])
    np.testing.assert_allclose(special_functions.erf(x), each(math.erf, x), rtol=0, atol=5e-16)
    np.testing.assert_allclose(special_functions.erfc(x), each(math.erfc, x), rtol=2e-14)
    np.testing.assert_allclose(
        special_functions.normal(x), each(statistics.NormalDist().cdf, x), rtol=1e-14, atol=1e-16
    )
    small = x[np.abs(x) < 5]
    np.testing.assert_allclose(special_functions.erfcx(small), np.exp(small**2) * each(math.erfc, small), rtol=2e-14)
    np.testing.assert_allclose(special_functions.erfcx(np.array([1e8])), 1 / (1e8 * math.sqrt(math.pi)), rtol=1e-15)
    assert (
        np.isnan(special_functions.erf(np.array([np.nan]))).all()
        and np.isnan(special_functions.erfc(np.array([np.nan]))).all()
    )


def test_erf_in_float32():
    bits = RANDOM.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    x = np.concatenate([bits, RANDOM.standard_normal(100_000).astype(np.float32), np.float32([0, -0.0, 4, np.inf])])
    expected = special_functions.erf(x.astype(np.float64)).astype(np.float32)
    out = special_functions.erf(x)
    assert out.dtype == np.float32
    np.testing.assert_array_max_ulp(out[~np.isnan(x)], expected[~np.isnan(x)], 2)
    assert (np.isnan(out) == np.isnan(x)).all()
    assert (np.signbit(out) == np.signbit(x))[~np.isnan(x)].all()


def test_gamma_at_its_poles():
    x = np.array([5.0, 0.5, -1.0, 0.0, -0.0, 1e6])
    assert call("tgamma", "f64", x).tolist()[:2] == [24, math.gamma(0.5)]
    assert np.isnan(call("tgamma", "f64", x)[2]) and call("tgamma", "f64", x)[3:].tolist() == [np.inf, -np.inf, np.inf]
    assert call("lgamma", "f64", x)[2:5].tolist() == [np.inf] * 3


def test_functions_that_end_in_cases():
    x = np.float32([0, -0.0, 1, 0.75, 6.5, -3, np.inf, np.nan])
    assert call("ilogbf", "i32", x).tolist() == [-(2**31), -(2**31), 0, -1, 2, 1, 2**31 - 1, -(2**31)]
    assert call("logbf", "f32", x)[:7].tolist() == [-np.inf, -np.inf, 0, -1, 2, 1, np.inf]
    assert call("roundf", "f32", np.float32([2.5, -2.5, 0.49999997, -0.2])).tolist() == [3, -3, 0, 0]
    assert call("rintf", "f32", np.float32([2.5, -2.5])).tolist() == [2, -2]
    assert call("sinpif", "f32", np.float32([0.5, 1, 1e6, -1.5])).tolist() == [1, 0, 0, 1]
    assert call("cospi", "f64", np.array([0.5, 1, 0.25])).tolist() == pytest.approx([0, -1, math.sqrt(0.5)], abs=1e-16)
    assert call("saturatef", "f32", np.float32([-1, 0.5, 2, np.nan])).tolist() == [0, 0.5, 1, 0]
    assert call("fdimf", "f32", np.float32([3, 1]), np.float32([1, 3])).tolist() == [2, 0]
    assert call("powif", "f32", np.float32([-2, 3]), np.int32([3, -1])).tolist() == [-8, np.float32(1 / 3)]
    assert call("ldexpf", "f32", np.float32([1.5]), np.int32([4])).tolist() == [24]
    assert call("norm4df", "f32", *np.float32([[1], [1], [1], [1]])).tolist() == [2]
    assert call("isnanf", "i32", x).tolist() == [0] * 7 + [1]
    assert call("signbitf", "i32", x).tolist() == [0, 1, 0, 0, 0, 1, 0, 0]


@np.errstate(all="ignore")
def test_fast_functions_have_their_ends_where_a_gpu_has_them():
    """PTX ISA, div.approx.f32 and lg2.approx.f32: a huge divisor gives 0, a power takes the logarithm of its base."""
    x = np.float32([3, -3, 3, 2.0**126, np.inf, 0, 6, np.inf])
    y = np.float32([2.0**126 * 1.5, 2.0**126 * 1.5, -(2.0**127), 2.0**126, 2.0**127, 2.0**127, np.inf, 3])
    found = call("fast_fdividef", "f32", x, y)
    assert np.isnan(found[4]) and found[[0, 1, 2, 3, 5, 6, 7]].tolist() == [0, 0, 0, 1, 0, 0, np.inf]
    assert np.signbit(found[:3]).tolist() == [False, True, True]
    powers = call("fast_powf", "f32", np.float32([-2, 0, 4, 0, 2]), np.float32([2, 0, 0.5, 2, -1]))
    assert np.isnan(powers[:2]).all() and powers[2:].tolist() == [2, 0, 0.5]


def test_remainder_rounds_its_quotient_to_nearest():
    x, y = RANDOM.uniform(-100, 100, (2, 2000))
    x[:4], y[:4] = [5, -5, 3, 1e300], [2, 2, 2, 3]
    np.testing.assert_array_equal(call("remainder", "f64", x, y), [math.remainder(a, b) for a, b in zip(x, y)])
    assert np.isnan(call("remainder", "f64", np.array([1.0, np.inf]), np.array([0.0, 1.0]))).all()
    assert call("remainder", "f64", np.array([1.0]), np.array([np.inf])).tolist() == [1]


# ---- integers and bits ------------------------------------------------------------------------------------------


def test_functions_of_bits():
    x = np.int32([0, 1, -1, 6, -(2**31)])
    assert call("clz", "i32", x).tolist() == [32, 31, 0, 29, 0]
    assert call("clzll", "i32", x.astype(np.int64)).tolist() == [64, 63, 0, 61, 0]
    assert call("popc", "i32", x).tolist() == [0, 1, 32, 2, 1]
    assert call("ffs", "i32", x).tolist() == [0, 1, 1, 2, 32]
    for name, size, values in (("brev", 32, x), ("brevll", 64, x.astype(np.int64))):
        expected = [int(f"{int(value) % (1 << size):0{size}b}"[::-1], 2) for value in values]
        assert call(name, f"i{size}", values).view(f"u{size // 8}").tolist() == expected
    assert call("byte_perm", "i32", np.int32([0x33221100]), np.int32([0x77665544]), np.int32([0x7531])).tolist() == [
        0x77553311
    ]
    assert call("hiloint2double", "f64", np.int32([0x3FF80000]), np.int32([-1])).view(np.int64) == 0x3FF80000FFFFFFFF
    assert call("double2hiint", "i32", np.array([1.5])).tolist() == [0x3FF80000]


@pytest.mark.parametrize("names, bits", [(("mulhi", "umulhi"), 32), (("mul64hi", "umul64hi"), 64)])
def test_upper_halves_of_products(names, bits):
    x, y = RANDOM.integers(-1 << 63, 1 << 63, (2, 500)) >> 64 - bits
    x[:2], y[:2] = -1 << bits - 1, [-1, -1 << bits - 1]
    x, y = (value.astype(f"i{bits // 8}") for value in (x, y))
    assert call(names[0], f"i{bits}", x, y).tolist() == [int(a) * int(b) >> bits for a, b in zip(x, y)]
    x_bits, y_bits = (value.view(f"u{bits // 8}") for value in (x, y))
    expected = [int(a) * int(b) >> bits for a, b in zip(x_bits, y_bits)]
    assert call(names[1], f"i{bits}", x, y).view(x_bits.dtype).tolist() == expected
    if bits == 32:
        assert compute("tt.mulhiui", "8xi32 8xi32", "8xi32", x, y).view(np.uint32).tolist() == expected


def test_means_and_differences():
    x, y = np.int32([2**31 - 1, -3, -1]), np.int32([2**31 - 1, 0, 2])
    assert call("hadd", "i32", x, y).tolist() == [2**31 - 1, -2, 0]
    assert call("rhadd", "i32", x, y).tolist() == [2**31 - 1, -1, 1]
    assert call("uhadd", "i32", x, y).view(np.uint32).tolist() == [2**31 - 1, (2**32 - 3) // 2, (2**32 + 1) // 2]
    assert call("sad", "i32", x, y, np.int32([1, 1, 1])).tolist() == [1, 4, 4]
    assert call("mul24", "i32", np.int32([0xFFFFFF]), np.int32([3])).tolist() == [-3]


# ---- in a direction ---------------------------------------------------------------------------------------------


def truth(name: str, *values) -> Fraction | None:
    x = [Fraction(float(value)) for value in values]
    if name in ("div", "rcp") and not x[-1]:
        return None
    return {
        "add": lambda: x[0] + x[1],
        "sub": lambda: x[0] - x[1],
        "mul": lambda: x[0] * x[1],
        "div": lambda: x[0] / x[1],
        "rcp": lambda: 1 / x[0],
        "fma": lambda: x[0] * x[1] + x[2],
    }[name]()


def is_next(out: float, true: Fraction, direction: str, dtype) -> bool:
    """Whether no float lies between the result and the true value, and it is on the right side."""
    down = direction == "rd" or (direction == "rz" and true > 0)
    if Fraction(out) == true:
        return True
    other = float(np.nextafter(dtype(out), dtype(np.inf if down else -np.inf)))
    return Fraction(out) < true < Fraction(other) if down else Fraction(other) < true < Fraction(out)


@pytest.mark.parametrize("direction", ["rz", "rd", "ru"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "rcp", "fma"])
def test_arithmetic_in_a_direction(name, dtype, direction):
    count = {"rcp": 1, "fma": 3}.get(name, 2)
    values = (RANDOM.standard_normal((count, 300)) * 10.0 ** RANDOM.integers(-12, 12, (count, 300))).astype(dtype)
    letter, element = ("f", "f32") if dtype is np.float32 else ("d", "f64")
    symbol = f"fma{'f' * (letter == 'f')}_{direction}" if name == "fma" else f"{letter}{name}_{direction}"
    out = call(symbol, element, *values)
    for n, one in enumerate(out.tolist()):
        assert is_next(one, truth(name, *values[:, n]), direction, dtype), (values[:, n], one)


def test_roots_and_narrowing_in_a_direction():
    x = np.abs(RANDOM.standard_normal(500))
    for dtype, letter, element in ((np.float32, "f", "f32"), (np.float64, "d", "f64")):
        down, up = (call(f"{letter}sqrt_{way}", element, x.astype(dtype)) for way in ("rd", "ru"))
        for low, high, value in zip(down.tolist(), up.tolist(), x.astype(dtype).tolist()):
            assert Fraction(low) ** 2 <= Fraction(value) <= Fraction(high) ** 2
            assert low == high or np.nextafter(dtype(low), dtype(9)) == high
    down, up = call("double2float_rd", "f32", x), call("double2float_ru", "f32", x)
    assert (down <= x).all() and (x <= up).all() and (np.nextafter(down, np.float32(9)) == up).all()


def test_what_overflows_stays_finite_in_one_direction():
    large = np.float32([3e38])
    largest = float(np.finfo(np.float32).max)
    assert call("fadd_rz", "f32", large, large) == largest and np.isinf(call("fadd_ru", "f32", large, large))
    assert call("fmul_rd", "f32", large, large) == largest and call("fmul_ru", "f32", -large, large) == -largest
    assert np.isinf(call("fadd_rz", "f32", np.float32([np.inf]), large))


def test_between_integers_and_floats_in_a_direction():
    x = RANDOM.integers(-1 << 63, 1 << 63, 400)
    for symbol, dtype, target in (("ll2float", np.float32, "f32"), ("ll2double", np.float64, "f64")):
        for direction in ("rd", "ru", "rz"):
            out = call(f"{symbol}_{direction}", target, x)
            assert all(is_next(one, Fraction(int(n)), direction, dtype) for one, n in zip(out.tolist(), x))
    assert call("uint2float_rd", "f32", np.int32([-1])) == 2**32 - 256
    values = np.float32([1.5, -1.5, 2.5, 3e9, np.nan])
    assert call("float2int_rn", "i32", values).tolist() == [2, -2, 2, 2**31 - 1, 0]
    assert call("float2int_ru", "i32", values).tolist() == [2, -1, 3, 2**31 - 1, 0]
    assert call("float2uint_rd", "i32", values).view(np.uint32).tolist() == [1, 0, 2, 3_000_000_000, 0]
    assert call("float2ll_rz", "i64", values).tolist() == [1, -1, 2, 3_000_000_000, -(2**63)]
    assert call("double2ull_rz", "i64", np.array([2.0**63, -1.0])).view(np.uint64).tolist() == [2**63, 0]
