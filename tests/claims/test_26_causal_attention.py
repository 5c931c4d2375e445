"""Lesson 26: how a quotient of whole numbers rounds, and what the kernel uses up."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl

from grader.wire.cubin import read_cubin
from tests.claims.attention_kernels import attention
from tests.claims.compiled import RELEASE, compiled
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions" / "26_causal_attention" / "causal_attention.py").read_text(encoding="utf-8")


@triton.jit
def quotient_kernel(x_ptr, z_ptr):
    tl.store(z_ptr, tl.load(x_ptr) // 4)


def test_a_quotient_of_whole_numbers_rounds_towards_0():
    assert "arith.divsi" in compiled(quotient_kernel, "*i32 *i32")["ttir"]


@pytest.mark.parametrize("has_options", [False, True])
def test_the_kernel_leaves_room_for_two_programs(tmp_path, has_options):
    constants = dict(D=128, BLOCK_M=64, BLOCK_N=64, HAS_WINDOW=has_options, HAS_CAP=has_options)
    facts = read_cubin(attention(tmp_path, SOLUTION, 4, **constants)["cubin"])
    assert facts.stack_bytes == 0 and 2 * facts.registers * 4 * 32 <= 65536
    if RELEASE == (3, 7):
        assert 165 <= facts.registers <= 168
