"""Lesson 18: what the kernel takes of a thread, the width of its accesses, and what is lost in 16 and in 32 bits."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from grader.wire.cubin import read_cubin
from tests.claims.compiled import compiled
from tests.claims.of_solutions import solution

ONE = dict(stride_lv=1, stride_g=1, stride_dv=1, BLOCK_V=4096)


def code(dtype: str, aligned: bool) -> dict[str, Any]:
    types = f"*{dtype} *i64 *fp32 *fp32 *{dtype} i32 i32 i32"
    return compiled(solution("18").cross_entropy_kernel, types, aligned, num_warps=8, **ONE)


def widths(ptx: str) -> set[str]:
    """Returns the kinds of stores to global memory, but for that of the loss."""
    return set(re.findall(r"st\.global\.(\S+)", ptx)) - {"b32"}


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_the_solution_takes_32_registers_and_moves_16_bytes_at_a_time(dtype):
    made = code(dtype, aligned=True)
    cubin = read_cubin(made["cubin"])
    assert (cubin.registers, cubin.stack_bytes) == (32, 0) and widths(made["ptx"]) == {"v4.b32"}


def test_rows_of_50257_columns_are_moved_two_bytes_at_a_time():
    made = code("bf16", aligned=False)
    assert widths(made["ptx"]) == {"b16"} and read_cubin(made["cubin"]).stack_bytes == 0


def test_a_probability_150_below_the_maximum_is_0_in_fp32():
    assert torch.tensor(-150.0).exp() == 0 == torch.tensor(-104.0).exp()


def test_a_number_just_below_1_becomes_1_in_bf16():
    assert torch.tensor(0.9986).bfloat16() == 1 and torch.tensor(1 - 2**-8).bfloat16() == 1 - 2**-8
