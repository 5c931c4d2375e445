"""The exact text of a kernel: 64 bits for every float, and nothing else changed."""

from __future__ import annotations

import math

import pytest

from grader.ttir.exact_text import NoExactRun, Why, exact_text
from grader.ttir.module import Module
from grader.ttir.parser import parse

TEXT = """#loc = loc("/tmp/x/f32.py":1:0)
#loc1 = loc("f32"(#loc))
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}], function_type = (!tt.ptr<ELEMENT>) -> (), \
sym_name = "k_f32", sym_visibility = "public"}> ({
  ^bb0(%x4xf32: !tt.ptr<ELEMENT> loc(#loc1)):
BODY
    "tt.return"() : () -> () loc(#loc)
  }) {noinline = false} : () -> () loc(#loc)
}) : () -> () loc(#loc)
"""


def kernel(*body: str, element: str = "f32") -> str:
    return TEXT.replace("BODY", "\n".join(f"    {line} loc(#loc1)" for line in body)).replace("ELEMENT", element)


def read(text: str) -> Module:
    return parse(text, "f32.py")


def exactly(*body: str, element: str = "f32") -> Module:
    text = kernel(*body, element=element)
    return read(exact_text(text, read(text)))


def constant(text: str, type: str) -> list[float]:
    module = exactly(f'%a = "arith.constant"() <{{value = {text} : {type}}}> : () -> {type}')
    operation = next(module.entry.walk())
    assert operation.result_types[0].element == "f64"
    value = operation.attributes["value"]
    return [value] if isinstance(value, float) else list(value.values)


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_types_have_64_bits_and_names_stay(element):
    splat = f'%bf16 = "tt.splat"(%x4xf32) : (!tt.ptr<{element}>) -> tensor<4x8x!tt.ptr<{element}>>'
    module = exactly(splat, element=element)
    splat, _ = module.entry.walk()
    assert [one.element for one in (*splat.operand_types, *splat.result_types)] == ["f64", "f64"]
    assert splat.result_types[0].shape == (4, 8) and splat.place.variable == "f32" and module.entry.name == "k_f32"


def test_whole_numbers_keep_their_bits():
    module = exactly('%a = "arith.constant"() <{value = dense<7> : tensor<4xi32>}> : () -> tensor<4xi32>')
    assert next(module.entry.walk()).result_types[0].element == "i32"


@pytest.mark.parametrize(
    "text, type, values",
    [
        ("0xFF800000", "f32", [-math.inf]),
        ("0x7C00", "f16", [math.inf]),
        ("1.500000e+00", "f32", [1.5]),
        ("-2.500000e-01", "bf16", [-0.25]),
        ("2.44140625E-4", "f32", [2.0**-12]),
        ("-1.000000e+09", "f32", [-1e9]),
        ("dense<0xFF800000>", "tensor<4xf32>", [-math.inf]),
        ("dense<[0.000000e+00, 0xFF80]>", "tensor<2xbf16>", [0.0, -math.inf]),
        ('dense<"0x0000803F000080FF">', "tensor<2xf32>", [1.0, -math.inf]),
        ('dense<"0x003C00FC">', "tensor<2xf16>", [1.0, -math.inf]),
    ],
)
def test_constants_keep_their_values(text, type, values):
    assert constant(text, type) == values


@pytest.mark.parametrize(
    "text, meant",
    [
        ("1.44269502", 1 / math.log(2)),
        ("-1.44269502", -1 / math.log(2)),
        ("0.693147182", math.log(2)),
        ("0.00999999977", 0.01),
        ("1.000000e+00", 1.0),
        ("0.000000e+00", 0.0),
        ("0.102040626", 0.102040626),
    ],
)
def test_a_rounded_constant_is_the_number_that_is_meant(text, meant):
    assert constant(text, "f32") == [meant]


def test_a_constant_of_fp16_is_meant_as_well():
    assert constant("9.997550e-02", "f16") == [0.1]
    assert constant("1.000980e-01", "bf16") == [0.1]


@pytest.mark.parametrize(
    "body, why",
    [
        ('%a = "tt.bitcast"(%x4xf32) : (!tt.ptr<f32>) -> !tt.ptr<i32>', Why.BITS),
        ('%a = "tt.ptr_to_int"(%x4xf32) : (!tt.ptr<f32>) -> i64', Why.BITS),
        ('%a = "tt.load"(%x4xf32) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32, isVolatile = false, '
         'operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f32 loc(#loc1)\n'
         '    %b = "tt.fp_to_fp"(%a) <{rounding = 1 : i32}> : (f32) -> f8E4M3FN', Why.CODES),
    ],
)  # fmt: skip
def test_texts_that_live_by_their_bits_have_none(body, why):
    text = kernel(body)
    with pytest.raises(NoExactRun) as caught:
        exact_text(text, read(text))
    assert (caught.value.why, caught.value.line) == (why, 1)
