"""Where a GPU differs from numpy, as an H200 with Triton 3.6 had it: `python benchmarks/interpreter_and_gpu.py`."""

from __future__ import annotations

import numpy as np
import pytest

from grader.interpreter.dtypes import DTYPES
from tests.interpreter.made import compute

TINY = np.float32(5.9e-39)  # below the normal numbers
HUGE = np.finfo(np.float64).max


def bits(x: np.ndarray) -> list[int]:
    return x.view(f"u{x.dtype.itemsize}").tolist()


def library(name: str, *values: float) -> np.ndarray:
    kinds = " ".join(["1xf32"] * len(values))
    given = [np.float32([[value]]) for value in values]
    return compute("tt.extern_elementwise", kinds, "1xf32", *given, symbol=f"__nv_{name}", libname="", libpath="")


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "f64"])
@pytest.mark.parametrize(
    ("name", "of_both"), [("maxnumf", 0.0), ("minnumf", -0.0), ("maximumf", 0.0), ("minimumf", -0.0)]
)
def test_of_two_zeros_the_negative_one_is_less(kind, name, of_both):
    one, other = np.array([[0.0, -0.0]], DTYPES[kind]), np.array([[-0.0, 0.0]], DTYPES[kind])
    found = compute(f"arith.{name}", f"2x{kind} 2x{kind}", f"2x{kind}", one, other)
    assert bits(found) == bits(np.full((1, 2), of_both, DTYPES[kind]))


@pytest.mark.parametrize("name", ["floor", "ceil", "sin", "erf", "sqrt"])
def test_functions_of_float32_take_what_is_below_the_normal_numbers_for_zero(name):
    found = compute(f"math.{name}", "2xf32", "2xf32", np.array([[TINY, -TINY]]))
    assert bits(np.abs(found)) == [[0, 0]] and bits(np.signbit(found)) == [[0, 1]]
    assert compute(f"math.{name}", "1xf64", "1xf64", np.array([[1e-310]])) != 0 or name == "floor"


@pytest.mark.parametrize("name", ["log", "log2"])
def test_a_logarithm_does_not(name):
    assert compute(f"math.{name}", "1xf32", "1xf32", np.array([[TINY]])) > -130


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("floorf", [-TINY], -0.0),
        ("erfcf", [9.64435], 0.0),
        ("nextafterf", [0.0, 0.5], 1.1754944e-38),
        ("nextafterf", [1.1754944e-38, 0.0], 1.1754942e-38),
        ("fadd_rd", [0.0, -0.0], -0.0),
        ("fadd_rd", [0.0, 0.0], 0.0),
        ("fsub_rd", [1.0, 1.0], -0.0),
        ("fdiv_rd", [0.5, 0.0], np.inf),
        ("fdiv_ru", [0.5, -0.0], -np.inf),
        ("fdiv_rz", [-0.5, 0.0], -np.inf),
        ("fdimf", [TINY, 0.0], TINY),
        ("copysignf", [TINY, -1.0], -TINY),
    ],
)
def test_the_library_at_its_edges(name, values, expected):
    assert bits(library(name, *values)) == bits(np.float32([[expected]]))


def test_a_remainder_goes_by_way_of_the_quotient():
    x, y = np.float32([[7.5, -7.5, 3.0, np.inf]]), np.float32([[2.0, 2.0, np.inf, np.inf]])
    found = compute("arith.remf", "4xf32 4xf32", "4xf32", x, y)
    assert found.tolist() == [[1.5, -1.5, 3.0, np.inf]]


def test_a_product_and_sum_of_zeros_keeps_its_sign_and_an_infinite_term_wins():
    x, y, z = np.array([[-0.0, HUGE]]), np.array([[0.0, HUGE]]), np.array([[-0.0, -np.inf]])
    assert bits(compute("math.fma", "2xf64 2xf64 2xf64", "2xf64", x, y, z)) == bits(np.array([[-0.0, -np.inf]]))


@pytest.mark.parametrize("kind", ["f8E5M2", "f8E4M3FN"])
def test_no_number_has_one_pattern_in_8_bits(kind):
    found = compute("tt.fp_to_fp", "2xf32", f"2x{kind}", np.float32([[np.nan, -np.nan]]), rounding=1)
    assert bits(found) == [[0x7F, 0x7F]]
