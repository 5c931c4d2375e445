"""Lesson 08: a sigmoid wants fp32, and an access of a thread moves 16 bytes at most."""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

from tests.claims.compiled import compiled


@triton.jit
def sigmoid_kernel(x_ptr, B: tl.constexpr):
    lanes = tl.arange(0, B)
    tl.store(x_ptr + lanes, tl.sigmoid(tl.load(x_ptr + lanes)))


@triton.jit
def copy_kernel(x_ptr, z_ptr, B: tl.constexpr):
    lanes = tl.arange(0, B)
    tl.store(z_ptr + lanes, tl.load(x_ptr + lanes))


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_a_sigmoid_of_16_bits_is_refused(dtype):
    assert compiled(sigmoid_kernel, "*fp32", B=128)["ptx"]
    with pytest.raises(CompilationError):
        compiled(sigmoid_kernel, f"*{dtype}", B=128)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "i8"])
def test_an_access_moves_16_bytes_at_most_however_many_lanes_a_thread_has(dtype):
    ptx = compiled(copy_kernel, f"*{dtype} *{dtype}", aligned=True, B=8192)["ptx"]
    assert set(re.findall(r"(?:ld|st)\.global\S*", ptx)) == {"ld.global.v4.b32", "st.global.v4.b32"}
