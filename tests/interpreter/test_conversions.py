"""From type to type: nearest even, toward zero, saturating, the same bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from grader.interpreter.dtypes import DTYPES, Unsupported, wide
from grader.interpreter.rounding import fused, to_odd
from tests.interpreter.made import compute, operation, prepare

RANDOM = np.random.default_rng(2)
TORCH = {"f16": torch.float16, "bf16": torch.bfloat16, "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2}


def convert(name: str, source: str, target: str, values, **attributes) -> np.ndarray:
    x = np.atleast_2d(np.asarray(values, DTYPES[source]))
    return compute(name, f"8x{source}", f"8x{target}", x, **attributes)[0]


def some_floats() -> np.ndarray:
    bits = RANDOM.integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
    return np.concatenate([bits, RANDOM.standard_normal(20000).astype(np.float32) * 100, np.float32([0, -0.0, np.inf])])


@pytest.mark.parametrize("target", TORCH)
def test_float32_to_narrow_as_torch_does_where_nothing_saturates(target):
    x = some_floats()
    if target.startswith("f8"):
        x = x[np.abs(x) <= float(ml_dtypes.finfo(DTYPES[target]).max)]
    x = x[~np.isnan(x)]
    name = "tt.fp_to_fp" if target.startswith("f8") else "arith.truncf"
    out = convert(name, "f32", target, x, **({"rounding": 1} if target.startswith("f8") else {}))
    np.testing.assert_array_equal(wide(out), torch.from_numpy(x).to(TORCH[target]).float().numpy())


@pytest.mark.parametrize("target, largest", [("f8E4M3FN", 448), ("f8E5M2", 57344)])
def test_8_bits_saturate(target, largest):
    out = wide(convert("tt.fp_to_fp", "f32", target, [1e9, -1e9, np.inf, -np.inf, np.nan], rounding=1))
    assert out[:4].tolist() == [largest, -largest, largest, -largest]
    assert np.isnan(out[4])


@pytest.mark.parametrize("source", TORCH)
def test_widening_is_exact(source):
    size = DTYPES[source].itemsize
    x = np.arange(256**size).astype(f"u{size}").view(DTYPES[source])
    out = convert("arith.extf" if size == 2 else "tt.fp_to_fp", source, "f32", x)
    signed = x.view(f"i{size}").copy()
    np.testing.assert_array_equal(out, torch.from_numpy(signed).view(TORCH[source]).float().numpy())
    assert convert("arith.extf", source, "f64", x).dtype == np.float64


@pytest.mark.parametrize("target", ["f16", "bf16", "f8E5M2"])
def test_toward_zero_is_the_nearest_that_is_no_further_out(target):
    x = some_floats()
    x = x[np.isfinite(x)]
    out = convert("tt.fp_to_fp", "f32", target, x, rounding=0)
    back = wide(out).astype(np.float64)
    assert (np.abs(back) <= np.abs(x)).all() and np.isfinite(back).all()
    further = (out.view(f"i{out.dtype.itemsize}") + 1).view(out.dtype)  # the next one away from zero
    beyond = np.abs(wide(further).astype(np.float64))
    assert (~(beyond <= np.abs(x)) | ~np.isfinite(beyond)).all()


@pytest.mark.parametrize("target, largest", [("f16", 65504), ("f8E5M2", 57344)])
def test_toward_zero_infinity_stays_and_large_numbers_do_not_become_it(target, largest):
    """For e5m2 Triton has cvt.rz.f16.f32, then drops 8 bits: no instruction with satfinite, as to nearest."""
    out = wide(convert("tt.fp_to_fp", "f32", target, [np.inf, -np.inf, 1e9, -1e9, np.nan], rounding=0))
    assert out[:4].tolist() == [np.inf, -np.inf, largest, -largest] and np.isnan(out[4])


def test_an_unknown_rounding_is_refused():
    with pytest.raises(Unsupported):
        prepare(operation("tt.fp_to_fp", "8xf32", "8xf16", rounding=7))


def test_float64_to_bf16_is_rounded_once():
    between = 1 + 2**-8  # halfway between two bf16
    x = np.array([between, between + 2**-40, between - 2**-40])
    assert convert("arith.truncf", "f64", "bf16", x).astype(float).tolist() == [1, 1 + 2**-7, 1]


def test_rounding_to_odd_keeps_the_side():
    x = RANDOM.integers(0, 1 << 63, 100_000).view(np.float64)
    x = np.concatenate([x[np.isfinite(x)], RANDOM.standard_normal(1000), [0.0, 1e39, -1e-46, 2.0**-150, np.inf]])
    with np.errstate(over="ignore"):
        out = to_odd(x)
    assert ((out == x) | (out.view(np.uint32) & 1 == 1)).all()
    with np.errstate(all="ignore"):
        below, above = (np.nextafter(out, np.float32(end)) for end in (-np.inf, np.inf))
    assert ((below <= x) & (x <= above)).all()


@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64"])
def test_whole_floats_to_integers_toward_zero(target):
    assert convert("arith.fptosi", "f32", target, [1.9, -1.9, 0.0, -0.5, 100]).tolist() == [1, -1, 0, 0, 100]
    assert convert("arith.fptoui", "f16", target, [1.9, 0.0, 100]).tolist() == [1, 0, 100]


def test_too_large_floats_saturate():
    assert convert("arith.fptosi", "f32", "i32", [3e9, -3e9, np.nan, np.inf]).tolist() == [
        2**31 - 1,
        -(2**31),
        0,
        2**31 - 1,
    ]
    assert convert("arith.fptosi", "f32", "i64", [1e30, -1e30]).tolist() == [2**63 - 1, -(2**63)]
    unsigned = convert("arith.fptoui", "f32", "i32", [3e9, -3.0, 1e30]).view(np.uint32)
    assert unsigned.tolist() == [3_000_000_000, 0, 2**32 - 1]
    assert convert("arith.fptoui", "f64", "i64", [2.0**63, 1e30]).view(np.uint64).tolist() == [2**63, 2**64 - 1]


def test_integers_to_floats():
    assert convert("arith.sitofp", "i1", "f32", [True, False]).tolist() == [-1, 0]
    assert convert("arith.uitofp", "i1", "f32", [True, False]).tolist() == [1, 0]
    assert convert("arith.uitofp", "i8", "f32", [-1]).tolist() == [255]
    assert convert("arith.sitofp", "i32", "f32", [2**24 + 1, -(2**31)]).tolist() == [2**24, -(2**31)]
    assert convert("arith.sitofp", "i32", "f16", [70000, 2049]).tolist() == [np.inf, 2048]
    near_half = (1 << 30) + (1 << 22) + 1  # above the half between two bf16 by less than float32 can tell
    assert float(convert("arith.sitofp", "i32", "bf16", [near_half])[0]) == (1 << 30) + (1 << 23)


@pytest.mark.parametrize("sign", [1, -1])
def test_64_bits_to_bf16_are_rounded_once(sign):
    half = (1 << 62) + (1 << 54)  # halfway between two bf16
    above = [half + 1, half + (1 << 9)]  # float64 cannot tell these from the half
    signed = convert("arith.sitofp", "i64", "bf16", [sign * number for number in (half - 1, half, *above, 3, 0)])
    assert signed.astype(float).tolist() == [sign * n for n in (2.0**62, 2.0**62, *2 * [2.0**62 + 2.0**55], 3, 0)]


def test_unsigned_64_bits_to_bf16_are_rounded_once():
    half = (1 << 63) + (1 << 55)
    numbers = np.array([half - 1, half, half + 1, 2**64 - 1, (1 << 53) + 1], np.uint64).view(np.int64)
    unsigned = convert("arith.uitofp", "i64", "bf16", numbers).astype(float)
    assert unsigned.tolist() == [2.0**63, 2.0**63, 2.0**63 + 2.0**56, 2.0**64, 2.0**53]


def test_integers_get_wider_and_narrower():
    assert convert("arith.extsi", "i1", "i32", [True, False]).tolist() == [-1, 0]
    assert convert("arith.extui", "i1", "i32", [True, False]).tolist() == [1, 0]
    assert convert("arith.extsi", "i8", "i64", [-1]).tolist() == [-1]
    assert convert("arith.extui", "i8", "i64", [-1]).tolist() == [255]
    assert convert("arith.trunci", "i32", "i8", [257, 128]).tolist() == [1, -128]
    assert convert("arith.trunci", "i32", "i1", [2, 3, -1]).tolist() == [False, True, True]


def test_the_same_bits():
    x = np.broadcast_to(np.float32([[1.5]]), (1, 8))  # strides of 0
    assert compute("tt.bitcast", "8xf32", "8xi32", x).tolist() == [[0x3FC00000] * 8]
    assert compute("tt.bitcast", "8xi16", "8xbf16", np.int16([[0x3FC0]])).astype(float).tolist() == [[1.5]]
    with pytest.raises(Unsupported):
        prepare(operation("tt.bitcast", "8xf32", "8xi16"))
    pointers = np.array([(3 << 48) | 16])
    assert compute("tt.ptr_to_int", "i64", "i64", pointers) is pointers


def test_fused_rounds_once():
    x = np.float32([1 + 2**-12])
    assert fused(x, x, np.float32([-1 - 2**-11]))[0] == np.float32(2**-24)
    y = np.array([1 + 2.0**-30])
    assert fused(y, y, np.array([-1 - 2.0**-29]))[0] == 2.0**-60
    with np.errstate(all="ignore"):
        assert np.isinf(fused(np.array([1e300]), np.array([1e300]), np.array([1.0])))[0]
