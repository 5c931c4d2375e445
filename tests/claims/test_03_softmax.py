"""Lesson 03: how long a row registers hold, and in which dtype reductions and exponentials are computed."""

from __future__ import annotations

import runpy

import pytest
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

from grader.wire.cubin import read_cubin
from tests.claims.compiled import compiled
from tests.conftest import ROOT

SOLUTION = runpy.run_path(str(ROOT / "solutions" / "03_softmax" / "softmax.py"))


@triton.jit
def dtypes_kernel(x_ptr, z_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    tl.static_assert(tl.max(x, 0).dtype == tl.float32)
    tl.static_assert(tl.sum(x, 0).dtype == tl.float16)
    tl.store(z_ptr, tl.sum(x, 0))


@triton.jit
def exp_of_fp16_kernel(x_ptr, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B), tl.exp(tl.load(x_ptr + tl.arange(0, B))))


@pytest.mark.parametrize(
    ("columns", "warps", "spills"), [(16384, 16, False), (32768, 16, False), (32768, 32, False), (65536, 32, True)]
)
def test_a_row_of_32768_columns_stays_in_registers_and_one_of_65536_does_not(columns, warps, spills):
    kernel, types, of_1 = SOLUTION["softmax_kernel"], "*fp32 *fp32 i32 i32 i32 i32", {"stride_xn": 1, "stride_zn": 1}
    texts = compiled(kernel, types, aligned=True, num_warps=warps, BLOCK_N=columns, **of_1)
    cubin = read_cubin(texts["cubin"])
    assert (cubin.stack_bytes > 0) == spills


def test_of_fp16_a_maximum_is_fp32_and_a_sum_fp16():
    assert compiled(dtypes_kernel, "*fp16 *fp16", B=128)["ptx"]


def test_an_exponential_of_fp16_is_refused():
    with pytest.raises(CompilationError, match="fp32"):
        compiled(exp_of_fp16_kernel, "*fp16", B=128)
