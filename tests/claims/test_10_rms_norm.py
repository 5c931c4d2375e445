"""Lesson 10: a block with fewer columns than threads is loaded more than once and stored once; what a barrier adds."""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl

from tests.claims.compiled import RELEASE, compiled


@triton.jit
def in_place_kernel(r_ptr, z_ptr, WAITS: tl.constexpr, B: tl.constexpr):
    cols = tl.arange(0, B)
    r = tl.load(r_ptr + cols)
    if WAITS:
        tl.debug_barrier()
    tl.store(r_ptr + cols, r + 1.0)
    tl.store(z_ptr + cols, r)


@pytest.mark.parametrize(("columns", "warps", "copies"), [(64, 4, True), (128, 4, False), (64, 2, False)])
def test_with_more_threads_than_columns_all_load_and_some_store(columns, warps, copies):
    ptx = compiled(in_place_kernel, "*fp32 *fp32", num_warps=warps, WAITS=False, B=columns)["ptx"]
    accesses = re.findall(r"(@%p\d+ )?(ld|st)\.global", ptx)
    assert {bool(condition) for condition, kind in accesses if kind == "ld"} == {False}
    assert {bool(condition) for condition, kind in accesses if kind == "st"} == {copies}


def test_warps_wait_for_each_other_only_at_a_barrier():
    free, waiting = (
        compiled(in_place_kernel, "*fp32 *fp32", num_warps=4, WAITS=waits, B=64)["ptx"] for waits in (False, True)
    )
    assert "bar.sync" not in free and waiting.count("bar.sync") == 1
    assert waiting.index("ld.global") < waiting.index("bar.sync") < waiting.index("st.global")


@triton.jit
def summed_in_place_kernel(r_ptr, sum_ptr, B: tl.constexpr):
    cols = tl.arange(0, B)
    r = tl.load(r_ptr + cols)
    tl.store(sum_ptr, tl.sum(r, 0))
    tl.store(r_ptr + cols, r + 1.0)


def test_which_copies_of_a_small_block_count_in_a_sum_depends_on_the_release():
    """Two of four warps hold a copy of 64 columns. Each warp sums up 16 columns for itself, and none waits."""
    ptx = compiled(summed_in_place_kernel, "*fp32 *fp32", num_warps=4, B=64)["ptx"]
    handed_on = re.findall(r"(@%p\d+ )?st\.shared", ptx)
    assert handed_on and all(bool(condition) == (RELEASE < (3, 8)) for condition in handed_on)
    assert "bar.sync" not in compiled(summed_in_place_kernel, "*fp32 *fp32", num_warps=4, B=16)["ptx"]
