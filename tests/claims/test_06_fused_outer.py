"""Lesson 06: what a maximum makes of NaN, and what the form of the addresses costs."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl

from tests.claims.compiled import RELEASE, compiled


@triton.jit
def relu_kernel(x_ptr, z_ptr, RULE: tl.constexpr):
    lanes = tl.arange(0, 128)
    x = tl.load(x_ptr + lanes)
    tl.store(z_ptr + lanes, tl.maximum(x, 0.0, propagate_nan=RULE))


@triton.jit
def outer_kernel(x_ptr, y_ptr, z_ptr, M, N, FORM: tl.constexpr):
    m, n = tl.arange(0, 32), tl.arange(0, 128)
    rows, cols = m[:, None], n[None, :]
    inside = (rows < M) & (cols < N)
    if FORM == "lines":
        x, y = tl.load(x_ptr + m, mask=m < M)[:, None], tl.load(y_ptr + n, mask=n < N)[None, :]
    elif FORM == "column and row":
        x, y = tl.load(x_ptr + rows, mask=rows < M), tl.load(y_ptr + cols, mask=cols < N)
    else:
        x, y = tl.load(x_ptr + rows + 0 * cols, mask=inside), tl.load(y_ptr + 0 * rows + cols, mask=inside)
    tl.store(z_ptr + rows * N + cols, x * y, mask=inside)


@pytest.mark.parametrize(("rule", "instruction"), [("NONE", "max.f32"), ("ALL", "max.NaN.f32")])
def test_a_maximum_keeps_nan_only_when_asked_to(rule, instruction):
    assert instruction in compiled(relu_kernel, "*fp32 *fp32", RULE=getattr(tl.PropagateNan, rule))["ptx"]


@pytest.mark.parametrize(
    ("form", "loads"),
    [("lines", 9), ("column and row", 33 if RELEASE < (3, 9) else 9), ("tiles", 16)],
)
def test_addresses_in_a_line_take_fewest_loads(form, loads):
    """Loads of each thread: up to 3.8 those of a column are made row by row; those of a tile move 16 bytes each."""
    ptx = compiled(outer_kernel, "*fp32 *fp32 *fp32 i32 i32", aligned=True, FORM=form)["ptx"]
    assert ptx.count("ld.global") == loads and ("ld.global.v4" in ptx) == (form == "tiles")
