"""Lesson 11: fp16 times fp32 is fp32, and what the kernel takes of a thread."""

from __future__ import annotations

import re
import runpy

import pytest
import triton
import triton.language as tl

from grader.wire.cubin import read_cubin
from tests.claims.compiled import compiled
from tests.conftest import ROOT


@triton.jit
def product_kernel(q_ptr, cos_ptr, B: tl.constexpr):
    lanes = tl.arange(0, B)
    product = tl.load(q_ptr + lanes) * tl.load(cos_ptr + lanes)
    tl.static_assert(product.dtype == tl.float32)
    tl.store(q_ptr + lanes, product)


def test_fp16_times_fp32_is_fp32():
    assert compiled(product_kernel, "*fp16 *fp32", B=128)["ptx"]


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_the_solution_takes_48_registers_and_moves_16_bytes_at_a_time(dtype):
    kernel = runpy.run_path(str(ROOT / "solutions" / "11_rope" / "rope.py"))["rope_kernel"]
    one = dict(stride_qd=1, stride_td=1, stride_ps=1, stride_zd=1, BLOCK_H=16, BLOCK_D=64)
    numbers = " ".join("i32" for name in kernel.arg_names if name not in one and not name.endswith("_ptr"))
    code = compiled(kernel, f"*{dtype} *fp32 *fp32 *i32 *{dtype} {numbers}", aligned=True, **one)
    cubin = read_cubin(code["cubin"])
    assert (cubin.registers, cubin.stack_bytes) == (48, 0)
    assert set(re.findall(r"(?:ld|st)\.global\.v\S*", code["ptx"])) == {"ld.global.v4.b32", "st.global.v4.b32"}
