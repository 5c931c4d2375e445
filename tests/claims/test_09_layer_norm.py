"""Lesson 09: a float that changes compiles nothing again, and how many warps a row of 16384 wants."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from triton._C.libtriton import native_specialize_impl
from triton.backends.nvidia.compiler import CUDABackend

from grader.wire.cubin import read_cubin
from tests.claims.compiled import compiled


@triton.jit
def norm_kernel(x_ptr, z_ptr, N, B: tl.constexpr):
    cols = tl.arange(0, B)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    centred = tl.where(cols < N, x - tl.sum(x, 0) / N, 0.0)
    tl.store(z_ptr + cols, centred / tl.sqrt(tl.sum(centred * centred, 0) / N), mask=cols < N)


def test_every_float_is_the_same_argument_to_the_compiler_and_an_int_is_not():
    kinds = [native_specialize_impl(CUDABackend, eps, False, True, True) for eps in (1e-5, 0.5, 1.0)]
    assert {kind for kind, _ in kinds} == {"fp32"} and len(set(kinds)) == 1
    assert len({native_specialize_impl(CUDABackend, size, False, True, True) for size in (1, 16, 17)}) == 3


@pytest.mark.parametrize(("warps", "spills"), [(2, True), (16, False)])
def test_a_row_of_16384_needs_more_than_two_warps(warps, spills):
    cubin = read_cubin(compiled(norm_kernel, "*fp32 *fp32 i32", aligned=True, num_warps=warps, B=16384)["cubin"])
    assert (cubin.stack_bytes > 0) == spills
