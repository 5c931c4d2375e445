"""math.* and the dialect's own functions of numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from grader.interpreter.dtypes import Unsupported
from grader.interpreter.registry import ENTRIES
from tests.interpreter.made import compute, operation, prepare

RANDOM = np.random.default_rng(4)
NAMES = ["exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil"]


def on(name: str, element: str, *values, **attributes) -> np.ndarray:
    return compute(name, " ".join([f"8x{element}"] * len(values)), f"8x{element}", *values, **attributes)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("element, dtype, tolerance", [("f32", np.float32, 4e-7), ("f64", np.float64, 1e-15)])
def test_functions_against_torch_in_float64(name, element, dtype, tolerance):
    x = RANDOM.uniform(0.01, 4, (2, 1000)).astype(dtype)
    expected = getattr(torch, name)(torch.from_numpy(x.astype(np.float64))).numpy()
    out = on(f"math.{name}", element, x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def test_functions_that_the_gpu_approximates_are_listed():
    approximate = {name for name, entry in ENTRIES.items() if entry.approximate}
    assert {"math.exp", "math.sqrt", "arith.divf", "tt.extern_elementwise"} <= approximate
    assert not {"tt.precise_sqrt", "tt.precise_divf", "math.fma", "arith.addf", "math.floor"} & approximate


def test_fused_multiply_and_add_differs_from_two_roundings():
    x, y, z = np.float32([[1 + 2**-12]]), np.float32([[1 + 2**-12]]), np.float32([[-1]])
    assert on("math.fma", "f32", x, y, z) == np.float32(2**-11 + 2**-24)
    assert on("math.fma", "f32", x, y, z) != x * y + z


def test_clamping():
    x, low, high = np.float32([[np.nan, -3, 0, 3]]), np.float32([[-1]]), np.float32([[1]])
    assert on("tt.clampf", "f32", x, low, high, propagateNan=0).tolist() == [[-1, -1, 0, 1]]
    kept = on("tt.clampf", "f32", x, low, high, propagateNan=0xFFFF)
    assert np.isnan(kept[0, 0]) and kept[0, 1:].tolist() == [-1, 0, 1]
    half = [value.astype(np.float16) for value in (x, low, high)]
    assert on("tt.clampf", "f16", *half).dtype == np.float16
    with pytest.raises(Unsupported):
        prepare(operation("tt.clampf", "8xf32 8xf32 8xf32", "8xf32", propagateNan=1))


def test_absolute_values():
    assert on("math.absi", "i32", np.int32([[-5, 5, -(2**31)]])).tolist() == [[5, 5, -(2**31)]]
    assert on("math.absf", "bf16", np.float32([[-5, 5]]).astype("bfloat16")).astype(float).tolist() == [[5, 5]]


def test_upper_half_of_16_and_64_bits():
    for bits in (16, 64):
        x, y = RANDOM.integers(0, 1 << 63, (2, 1, 200)).astype(f"u{bits // 8}")
        out = on("tt.mulhiui", f"i{bits}", x.view(f"i{bits // 8}"), y.view(f"i{bits // 8}"))
        expected = [int(a) * int(b) >> bits for a, b in zip(x[0], y[0])]
        assert out.view(x.dtype)[0].tolist() == expected
