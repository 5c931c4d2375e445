"""tt.dot and tt.dot_scaled against products in float64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from grader.interpreter.dtypes import DTYPES, Unsupported, wide
from grader.interpreter.products import to_tf32
from tests.interpreter.made import compute, operation, prepare

RANDOM = np.random.default_rng(6)


def dot(a, b, c, element: str, target: str, **attributes) -> np.ndarray:
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    outer = "".join(f"{size}x" for size in a.shape[1:-2])
    kinds = f"{outer}{m}x{k}x{element} {outer}{k}x{n}x{element} {outer}{m}x{n}x{target}"
    return compute("tt.dot", kinds, f"{outer}{m}x{n}x{target}", a, b, c, **attributes)


def random(shape, element: str = "f32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32).astype(DTYPES[element])


def in_double(a, b) -> np.ndarray:
    return np.matmul(wide(a).astype(np.float64), wide(b).astype(np.float64))


@pytest.mark.parametrize("element", ["f16", "bf16", "f8E4M3FN", "f8E5M2", "f32"])
@pytest.mark.parametrize("programs", [(1, 1), (3, 1), (1, 3), (3, 3)])
def test_products_are_summed_in_float32(element, programs):
    a, b, c = random((programs[0], 16, 32), element), random((programs[1], 32, 8), element), random((1, 1, 8))
    out = dot(a, b, c, element, "f32", inputPrecision=2)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, in_double(a, b) + c, rtol=1e-5, atol=2e-5)


def test_operands_with_axes_of_one_and_transposed():
    a, b = random((2, 16, 1)), random((1, 1, 8))
    kinds = "16x32xf32 32x8xf32 16x8xf32"
    out = compute("tt.dot", kinds, "16x8xf32", a, b, np.zeros((1, 1, 1), np.float32), inputPrecision=2)
    np.testing.assert_allclose(out, 32 * a * b, rtol=1e-5)
    a, b = random((2, 32, 16)), random((2, 8, 32))
    out = dot(a.transpose(0, 2, 1), b.transpose(0, 2, 1), np.zeros((1, 1, 1), np.float32), "f32", "f32")
    np.testing.assert_allclose(out, in_double(a.transpose(0, 2, 1), b.transpose(0, 2, 1)), rtol=1e-5, atol=1e-5)


def test_batched_products():
    a, b, c = random((2, 4, 16, 32)), random((1, 4, 32, 8)), random((2, 4, 16, 8))
    np.testing.assert_allclose(dot(a, b, c, "f32", "f32"), in_double(a, b) + c, rtol=1e-5, atol=2e-5)


def test_float64_and_a_half_accumulator():
    a, b, c = random((1, 16, 16), "f64"), random((1, 16, 16), "f64"), random((1, 16, 16), "f64")
    np.testing.assert_allclose(dot(a, b, c, "f64", "f64"), in_double(a, b) + c, rtol=1e-13, atol=1e-13)
    a, b, c = random((1, 16, 16), "f16"), random((1, 16, 16), "f16"), random((1, 16, 16), "f16")
    out = dot(a, b, c, "f16", "f16")
    assert out.dtype == np.float16
    expected = (np.matmul(wide(a), wide(b)) + wide(c)).astype(np.float16)
    np.testing.assert_array_equal(out, expected)


def test_tf32_keeps_ten_bits():
    x = np.float32([1 + 2**-10, 1 + 2**-11, 1 + 2**-12, -1 - 2**-11, np.inf, -np.inf])
    assert to_tf32(x).tolist() == [1 + 2**-10, 1, 1, -1, np.inf, -np.inf]
    assert np.isnan(to_tf32(np.array([0x7FFFFFFF], np.uint32).view(np.float32))).all()


def test_input_precisions_differ_as_they_should():
    a, b, c = random((1, 64, 256)), random((1, 256, 64)), np.zeros((1, 1, 1), np.float32)
    exact = in_double(a, b)
    errors = [np.abs(dot(a, b, c, "f32", "f32", inputPrecision=number) - exact).max() for number in range(5)]
    tf32, tf32x3, ieee, bf16x3, bf16x6 = errors
    assert 1e-3 < tf32 < 5e-2
    assert 2 * ieee < bf16x3 < tf32 / 20
    assert max(tf32x3, ieee, bf16x6) < 1e-4
    with pytest.raises(Unsupported):
        prepare(operation("tt.dot", "8x8xf32 8x8xf32 8x8xf32", "8x8xf32", inputPrecision=9))


def test_input_precision_is_for_float32_alone():
    a, b, c = random((1, 16, 16), "bf16"), random((1, 16, 16), "bf16"), np.zeros((1, 1, 1), np.float32)
    np.testing.assert_array_equal(
        dot(a, b, c, "bf16", "f32", inputPrecision=0), dot(a, b, c, "bf16", "f32", inputPrecision=2)
    )


@pytest.mark.parametrize("depth", [32, 1024, 2048])
def test_integers_are_exact(depth):
    a, b = (RANDOM.integers(-128, 128, (2, 16, depth)).astype(np.int8) for _ in range(2))
    a[0], b[0] = -128, -128
    b = b.transpose(0, 2, 1)
    c = np.full((1, 1, 1), 2**31 - 1, np.int32)
    expected = np.matmul(a.astype(np.int32), b.astype(np.int32)) + c  # wraps
    np.testing.assert_array_equal(dot(a, b, c, "i8", "i32"), expected)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(Unsupported):
        prepare(operation("tt.dot", "8x4xf32 8x8xf32 8x8xf32", "8x8xf32"))
    with pytest.raises(Unsupported):
        prepare(operation("tt.dot", "8x8xi16 8x8xi16 8x8xi32", "8x8xi32"))


# ---- scaled -----------------------------------------------------------------------------------------------------

FORMATS = {"e4m3": 0, "e5m2": 1, "e2m1": 4, "bf16": 5, "fp16": 6}
ELEMENTS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "e2m1": "i8", "bf16": "bf16", "fp16": "f16"}


def operand(form: str, rows: int, columns: int, packed_axis: int) -> tuple[np.ndarray, np.ndarray]:
    """(as the operation takes it, its values)."""
    if form != "e2m1":
        x = random((2, rows, columns), ELEMENTS[form])
        return x, wide(x)
    codes = RANDOM.integers(0, 16, (2, rows, columns)).astype(np.uint8)
    values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    even, odd = np.split(np.moveaxis(codes, packed_axis, -1).reshape(-1, 2), 2, axis=1)
    shape = list(np.moveaxis(codes, packed_axis, -1).shape)
    shape[-1] //= 2
    return np.moveaxis((even | odd << 4).reshape(shape), -1, packed_axis).view(np.int8), values


@pytest.mark.parametrize("a_form", FORMATS)
@pytest.mark.parametrize("b_form", ["e2m1", "e4m3", "bf16"])
@pytest.mark.parametrize("packed_along_k", [True, False])
def test_scaled_products(a_form, b_form, packed_along_k):
    m, k, n = 16, 64, 8
    a, a_values = operand(a_form, m, k, 2 if packed_along_k else 1)
    b, b_values = operand(b_form, k, n, 1 if packed_along_k else 2)
    a_scale, b_scale = (RANDOM.integers(120, 135, (1, rows, k // 32)).astype(np.uint8) for rows in (m, n))
    c = random((1, m, n))
    a_true = a_values * np.repeat(2.0 ** (a_scale.astype(int) - 127), 32, axis=2)
    b_true = b_values * np.repeat(2.0 ** (b_scale.astype(int) - 127), 32, axis=2).transpose(0, 2, 1)
    kinds = [f"{a.shape[1]}x{a.shape[2]}x{ELEMENTS[a_form]}", f"{b.shape[1]}x{b.shape[2]}x{ELEMENTS[b_form]}"]
    attributes = dict(a_elem_type=FORMATS[a_form], b_elem_type=FORMATS[b_form], fastMath=False)
    attributes |= dict(lhs_k_pack=packed_along_k, rhs_k_pack=packed_along_k)
    both = " ".join([*kinds, f"{m}x{n}xf32", f"{m}x{k // 32}xi8", f"{n}x{k // 32}xi8"])
    scales = a_scale.view(np.int8), b_scale.view(np.int8)
    out = compute("tt.dot_scaled", both, f"{m}x{n}xf32", a, b, c, *scales, operandSegmentSizes=[1] * 5, **attributes)
    np.testing.assert_allclose(out, np.matmul(a_true, b_true) + c, rtol=1e-4, atol=1e-2)
    only_b = " ".join([*kinds, f"{m}x{n}xf32", f"{n}x{k // 32}xi8"])
    segments = [1, 1, 1, 0, 1]
    out = compute(
        "tt.dot_scaled", only_b, f"{m}x{n}xf32", a, b, c, scales[1], operandSegmentSizes=segments, **attributes
    )
    np.testing.assert_allclose(out, np.matmul(a_values, b_true) + c, rtol=1e-4, atol=1e-2)


def test_a_scale_that_is_no_number():
    a = np.ones((1, 16, 32), ml_dtypes.bfloat16)
    kinds = "16x32xbf16 32x8xbf16 16x8xf32 16x1xi8"
    attributes = dict(a_elem_type=5, b_elem_type=5, operandSegmentSizes=[1, 1, 1, 1, 0])
    b, c = np.ones((1, 32, 8), ml_dtypes.bfloat16), np.zeros((1, 1, 1), np.float32)
    scale = np.array([127] * 15 + [255], np.uint8).view(np.int8).reshape(1, 16, 1)
    out = compute("tt.dot_scaled", kinds, "16x8xf32", a, b, c, scale, **attributes)
    assert (out[0, :15] == 32).all() and np.isnan(out[0, 15]).all()
