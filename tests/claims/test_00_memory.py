"""Lesson 00: what fits into registers, and what is spilled."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl

from grader.wire.cubin import read_cubin
from tests.claims.compiled import compiled


@triton.jit
def centred_kernel(x_ptr, B: tl.constexpr):
    """Needs the whole block at once: nothing can be stored before all of it is summed."""
    cols = tl.arange(0, B)
    x = tl.load(x_ptr + cols)
    tl.store(x_ptr + cols, x - tl.sum(x, 0))


@pytest.mark.parametrize(("size", "warps", "spills"), [(32768, 4, True), (32768, 16, False), (16384, 4, False)])
def test_a_block_is_spilled_where_a_thread_would_hold_256_numbers(size, warps, spills):
    cubin = read_cubin(compiled(centred_kernel, "*fp32", aligned=True, num_warps=warps, B=size)["cubin"])
    assert (cubin.stack_bytes > 0) == spills and cubin.registers <= 255
