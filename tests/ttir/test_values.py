"""Values of attributes, types and floats in every format."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from grader.ttir.attributes import attributes_of, string_of
from grader.ttir.floats import WIDTHS, float_of_bits
from grader.ttir.module import BadText, Dense, Type
from grader.ttir.types import type_of

NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}


@pytest.mark.parametrize("element", sorted(WIDTHS))
def test_floats_of_all_bits(element):
    width = WIDTHS[element]
    step = 1 if width <= 8 else (1 << width) // 997
    for bits in range(0, 1 << width, step):
        expected = float(np.array(bits, f"u{width // 8}").view(NUMPY[element]))
        value = float_of_bits(bits, element)
        assert (
            value == expected
            and math.copysign(1, value) == math.copysign(1, expected)
            or (math.isnan(value) and math.isnan(expected))
        )
    with pytest.raises(OverflowError):
        float_of_bits(1 << width, element)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 : i32", 7),
        ("-7 : i64", -7),
        ("255 : i8", -1),
        ("true", True),
        ("-1.500000e+00 : f16", -1.5),
        ("0x7F800000 : f32", math.inf),
        ("0xFC00 : f16", -math.inf),
        ("0xFF80 : bf16", -math.inf),
        ('"a \\22b\\22 \\5C \\\\ \\0A"', 'a "b" \\ \\ \n'),
        ('"gr\\C3\\B6\\C3\\9Fe ß"', "größe ß"),
        ("array<i32: 1, 0, -3>", [1, 0, -3]),
        ("array<i32>", []),
        ("array<i1: true, false>", [True, False]),
        ('["a", 1 : i32, {b}]', ["a", 1, {"b": True}]),
        ("#arith.overflow<none>", "none"),
        ("#tt.cache_policy<cache_modifier = cg, e = x>", "cache_modifier = cg, e = x"),
        ("#loop", "#llvm.loop_annotation<licm = #licm>"),
        ("@symbol.of", "symbol.of"),
        ('@"symbol (1,)"', "symbol (1,)"),
        ("(i32, !tt.ptr<f32>) -> ()", "(i32, !tt.ptr<f32>) -> ()"),
        ("dense<3> : tensor<4xi32>", Dense((3,))),
        ("dense<true> : tensor<4xi1>", Dense((True,))),
        ("dense<0x7FC0> : tensor<4xbf16>", None),
        ("dense<[1, 2]> : tensor<2xi8>", Dense((1, 2))),
        ("dense<[[1.0, 2.5], [-0.0, 0xFF800000]]> : tensor<2x2xf32>", Dense((1.0, 2.5, -0.0, -math.inf))),
        ('dense<"0x0100FFFF"> : tensor<2xi16>', Dense((1, -1))),
        ('dense<"0x0000803F000000C0"> : tensor<2xf32>', Dense((1.0, -2.0))),
    ],
)
def test_a_value(text, value):
    found = attributes_of(f"first, name = {text}, last", {"loop": "#llvm.loop_annotation<licm = #licm>"})
    assert list(found) == ["first", "name", "last"]
    if value is None:
        assert math.isnan(found["name"].values[0])
    else:
        assert found["name"] == value and type(found["name"]) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "7", "7 : f32", "7.0 : i32", "0x1FFFFFFFF : f32", "1e400 : f64", "256 : i8", "-129 : i8", "01 : i32", "2 : i1",
        "true : i32x", "٣ : i32", "dense<1> : i32", "dense<[1, 2, 3]> : tensor<2xi32>", "dense<> : tensor<2xi32>",
        'dense<"0x01"> : tensor<2xi32>', 'dense<"0x0g"> : tensor<1xi8>', 'dense<"0x01"> : tensor<8xi1>',
        "array<i32: 1,, 2>", "array<i32: x>", "#unknown", '"open', "[1 : i32", "{a = 1 : i32",
        "1 : i32, name = 2 : i32", "= 3", "",
        "[[[[[[[[[[[[1 : i32]]]]]]]]]]]]", "dense<1> : tensor<2x!tt.ptr<f32>>",
    ],
)  # fmt: skip
def test_a_value_that_is_refused(text):
    with pytest.raises(BadText):
        attributes_of(f"name = {text}", {})


def test_a_string_keeps_what_is_no_text():
    assert string_of('"\\FF"') == "\N{REPLACEMENT CHARACTER}"
    assert string_of('"\ud800\\41"').endswith("A")


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("i1", Type("i1")),
        ("f8E4M3FN", Type("f8E4M3FN")),
        ("!tt.ptr<bf16>", Type("bf16", (), "pointer")),
        ("!tt.ptr<!tt.ptr<f32>>", Type("!tt.ptr<f32>", (), "pointer")),
        ("tensor<64x1xi1>", Type("i1", (64, 1))),
        ("tensor<64x!tt.ptr<f16>>", Type("f16", (64,), "pointer")),
        ("tensor<8x!tt.ptr<!tt.ptr<f16>>>", Type("!tt.ptr<f16>", (8,), "pointer")),
        ("!tt.ptr<tensor<16x8xf32>>", Type("f32", (16, 8), "block pointer")),
        ("!tt.tensordesc<tensor<32x64xsi8>>", Type("si8", (32, 64), "descriptor")),
        ("!tt.tensordesc<32x64xf16>", Type("f16", (32, 64), "descriptor")),
        ("tensor<1048576xi8>", Type("i8", (1 << 20,))),
    ],
)
def test_a_type(text, type):
    assert type_of(text) == type
    assert type_of(text).lanes == math.prod(type.shape)


@pytest.mark.parametrize(
    "text",
    [
        "", "i33", "i128", "si32", "index", "none", "tensor<f32>", "tensor<0xf32>", "tensor<-4xf32>", "tensor<?xf32>",
        "tensor<4xf32", "tensor<4xf32>>", "tensor<4xsi32>", "tensor<4x5>", "tensor<1048577xi8>",
        "tensor<4xf32, #blocked>", "tensor<4xtensor<4xf32>>", "tensor<4x!tt.ptr<tensor<4xf32>>>", "!tt.ptr<f32, 3>",
        "!tt.ptr<>",
        "!tt.ptr<!tt.tensordesc<4xf32>>", "!tt.tensordesc<4x!tt.ptr<f32>>", "!ttg.memdesc<4xf32>", "vector<4xf32>",
        "!tt.ptr<" * 40 + "f32" + ">" * 40, "tensor<" + "1x" * 21 + "f32>", "tensor<9999999999xf32>", "tensor<٤xf32>",
    ],
)  # fmt: skip
def test_a_type_that_is_refused(text):
    with pytest.raises(BadText):
        type_of(text)
