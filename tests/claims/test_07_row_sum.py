"""Lesson 07: what a row as one block costs, how many additions a sum takes one behind the other, what a loop may do."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

from grader.wire.cubin import read_cubin
from tests.claims.chains import longest_chain
from tests.claims.compiled import RELEASE, compiled


@triton.jit
def sum_kernel(x_ptr, z_ptr, N, B: tl.constexpr):
    cols = tl.arange(0, B)
    tl.store(z_ptr, tl.sum(tl.load(x_ptr + cols, mask=cols < N, other=0.0), 0))


@triton.jit
def variance_kernel(x_ptr, z_ptr, N, B: tl.constexpr):
    cols = tl.arange(0, B)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    centred = tl.where(cols < N, x - tl.sum(x, 0) / N, 0.0)
    tl.store(z_ptr, tl.sum(centred * centred, 0))


@triton.jit
def loop_kernel(x_ptr, z_ptr, N, B: tl.constexpr):
    lanes = tl.arange(0, B)
    partial = tl.zeros((B,), dtype=tl.float32)
    for start in range(0, N, B):
        partial += tl.load(x_ptr + start + lanes, mask=start + lanes < N, other=0.0)
    tl.store(z_ptr, tl.sum(partial, 0))


@triton.jit
def replacing_kernel(x_ptr, z_ptr, N, B: tl.constexpr):
    partial = tl.zeros((B,), dtype=tl.float32)
    for start in range(0, N, B):
        partial = tl.load(x_ptr + start + tl.arange(0, B))
    tl.store(z_ptr, tl.sum(partial, 0))


@triton.jit
def breaking_kernel(x_ptr, z_ptr, N):
    for start in range(0, N):
        if tl.load(x_ptr + start) > 0.0:
            break
    tl.store(z_ptr, 0.0)


@pytest.mark.parametrize(("columns", "warps", "additions"), [(2048, 8, 15), (4096, 8, 23), (1024, 4, 14)])
def test_up_to_3_7_a_thread_adds_its_own_numbers_one_after_the_other(columns, warps, additions):
    """From 3.8 on the chain is as long as a tree is deep: 11 for 2048."""
    in_pairs = columns.bit_length() - 1
    code = compiled(sum_kernel, "*fp32 *fp32 i32", aligned=True, num_warps=warps, B=columns)
    assert longest_chain(code["ptx"]) == (additions if RELEASE < (3, 8) else in_pairs)


@pytest.mark.parametrize(("kernel", "spills"), [(sum_kernel, False), (variance_kernel, True), (loop_kernel, True)])
def test_a_row_of_65536_spills_where_its_numbers_have_to_stay(kernel, spills):
    """A plain sum adds each number as it arrives; a variance needs them again; a loop keeps all its partial sums."""
    cubin = read_cubin(compiled(kernel, "*fp32 *fp32 i32", aligned=True, num_warps=8, B=65536)["cubin"])
    assert (cubin.stack_bytes > 0) == spills


def test_a_variable_keeps_its_dtype_in_a_loop():
    with pytest.raises(CompilationError, match="fp32.*fp16"):
        compiled(replacing_kernel, "*fp16 *fp32 i32", B=128)


def test_a_loop_has_no_break():
    with pytest.raises(CompilationError, match="Break"):
        compiled(breaking_kernel, "*fp32 *fp32 i32")
