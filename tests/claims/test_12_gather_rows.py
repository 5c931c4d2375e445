"""Lesson 12: in how many bits an offset is computed, and how wide an access is with few and with many warps."""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl
from triton._C.libtriton import native_specialize_impl
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler.errors import CompilationError

from tests.claims.compiled import compiled


@triton.jit
def offset_kernel(index_ptr, z_ptr, stride):
    tl.store(z_ptr, tl.load(index_ptr) * stride)


@triton.jit
def widened_kernel(index_ptr, z_ptr, stride):
    tl.store(z_ptr, tl.load(index_ptr) * stride.to(tl.int64))


@triton.jit
def program_id_kernel(z_ptr):
    tl.static_assert(tl.program_id(0).dtype == tl.int32)
    tl.store(z_ptr, tl.program_id(0))


@triton.jit
def copy_kernel(x_ptr, z_ptr, B: tl.constexpr):
    lanes = tl.arange(0, B)
    tl.store(z_ptr + lanes, tl.load(x_ptr + lanes))


@pytest.mark.parametrize(("index", "product"), [("i32", "mul.lo.s32"), ("i64", "mul.lo.s64")])
def test_a_product_is_as_wide_as_its_wider_factor(index, product):
    assert product in compiled(offset_kernel, f"*{index} *i64 i32")["ptx"]


def test_a_program_id_is_int32():
    assert compiled(program_id_kernel, "*i32")["ptx"]


def test_a_stride_is_int64_only_when_it_has_to_be():
    strides = [native_specialize_impl(CUDABackend, stride, False, True, True)[0] for stride in (65_536, 2**31)]
    assert strides == ["i32", "i64"]


def test_a_stride_that_is_1_has_no_to():
    assert compiled(widened_kernel, "*i32 *i64 i32")["ptx"]
    assert native_specialize_impl(CUDABackend, 1, False, True, True) == ("constexpr", 1)
    with pytest.raises(CompilationError, match="no attribute 'to'"):
        compiled(widened_kernel, "*i32 *i64", stride=1)


def test_a_block_has_1048576_lanes_at_most():
    with pytest.raises(CompilationError, match="1048576"):
        compiled(copy_kernel, "*fp16 *fp16", B=1 << 21)


@pytest.mark.parametrize(("warps", "access"), [(2, "v4.b32"), (4, "v4.b32"), (8, "v2.b32"), (16, "b32")])
def test_more_warps_than_the_block_has_work_for_make_narrow_accesses(warps, access):
    ptx = compiled(copy_kernel, "*fp16 *fp16", aligned=True, num_warps=warps, B=1024)["ptx"]
    assert set(re.findall(r"(?:ld|st)\.global\S*", ptx)) == {f"ld.global.{access}", f"st.global.{access}"}
