"""Lesson 04: a tile is turned in shared memory, a reshape turns nothing, and both ways of writing it are one."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl

from tests.claims.compiled import compiled


@triton.jit
def turned_kernel(x_ptr, z_ptr, M, N, A: tl.constexpr, B: tl.constexpr):
    m, n = tl.arange(0, A), tl.arange(0, B)
    tile = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(z_ptr + n[:, None] * M + m[None, :], tl.trans(tile))


@triton.jit
def pointers_exchanged_kernel(x_ptr, z_ptr, M, N, A: tl.constexpr, B: tl.constexpr):
    m, n = tl.arange(0, A), tl.arange(0, B)
    tile = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(z_ptr + m[:, None] + n[None, :] * M, tile)


@pytest.mark.parametrize("kernel", [turned_kernel, pointers_exchanged_kernel], ids=lambda one: one.__name__)
def test_the_tile_goes_through_shared_memory_and_both_sides_move_16_bytes(kernel):
    ptx = compiled(kernel, "*fp32 *fp32 i32 i32", aligned=True, num_warps=8, A=64, B=64)["ptx"]
    for access in ("ld.global.v4", "st.shared", "ld.shared", "st.global.v4"):
        assert access in ptx


def test_a_tile_of_128_x_64_takes_32_kib_of_shared_memory():
    texts = compiled(turned_kernel, "*fp32 *fp32 i32 i32", aligned=True, num_warps=32, A=128, B=64)
    shared = int(texts["ttgir"].partition("ttg.shared = ")[2].split(" ")[0]) if "ttg.shared = " in texts["ttgir"] else 0
    assert shared == 0 or 32768 <= shared <= 34816
