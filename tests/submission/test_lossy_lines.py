"""Lines of kernels in which numbers lose digits, or NaN, as far as the text tells."""

from __future__ import annotations

import ast

import pytest

from grader.submission.lossy_lines import line_of_maximum_with_0, line_of_rounding


def kernel(*lines: str) -> ast.Module:
    """The first of these lines is line 3."""
    body = "".join(f"    {line}\n" for line in lines)
    return ast.parse(f"@triton.jit\ndef kernel(x_ptr, z_ptr):\n{body}")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("acc = acc.to(tl.float16) + bias", "tl.store(z_ptr, acc)"), (3, "fp16")),
        (("h = h.to(z_ptr.dtype.element_ty)", "z = h * 2", "tl.store(z_ptr, z)"), (3, "bf16")),
        (("h = h.to(z_ptr.dtype.element_ty)", "tl.store(z_ptr, h)"), None),
        (("tl.store(z_ptr, acc.to(tl.float16))",), None),
        (("acc = tl.dot(p.to(tl.float16), v, acc)", "tl.store(z_ptr, acc)"), None),
        (("p = p.to(tl.float16)", "acc = tl.dot(p, v, acc)"), None),
        (("x = tl.load(x_ptr).to(tl.float16)", "tl.store(z_ptr, x * x)"), None),
        (("x = tl.load(x_ptr)", "w = x.to(tl.float16)", "tl.store(z_ptr, w * w)"), None),
        (("x = x.to(tl.float32) * y", "tl.store(z_ptr, x)"), None),
        (("a = a.to(tl.float16) * y", "b = b.to(tl.bfloat16) * y"), None),
        (("return x.to(tl.float16)",), None),
    ],
)
def test_the_line_that_rounds_what_is_computed_with(lines, found):
    rounding = line_of_rounding(kernel(*lines), "bf16")
    assert (rounding and (rounding.line, rounding.dtype)) == found


def test_of_a_sum_only_one_that_was_made_in_fp32():
    wide = ("h = x.to(tl.float32) + y", "h = h.to(tl.float16).to(tl.float32)", "tl.store(z_ptr, h * w)")
    narrow = ("h = x + y", "h = h.to(tl.float16)", "tl.store(z_ptr, h * w)")
    other = ("h = x.to(tl.float32) + y", "w = w.to(tl.float16)", "tl.store(z_ptr, h * w)")
    lines = [line_of_rounding(kernel(*one), "fp16", of_a_sum=True) for one in (wide, narrow, other)]
    assert lines[0].line == 4 and lines[1:] == [None, None]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("v = tl.maximum(v, 0.0)",), 3),
        (("v = tl.maximum(0, v)",), 3),
        (("v = tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL)",), 0),
        (("rows = tl.maximum(rows, 0)", "v = tl.where(v > 0, v, 0.0)"), 0),
        (("rows = tl.maximum(rows, first)", "v = tl.maximum(v, 0.0)"), 0),
        (("v = v * (v > 0)",), 0),
    ],
)
def test_the_line_of_a_maximum_that_drops_nan(lines, found):
    assert line_of_maximum_with_0(kernel(*lines)) == found
