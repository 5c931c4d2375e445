"""Lesson 31: what a logit loses in 16 bits, and what a tile of logits takes of a multiprocessor."""

from __future__ import annotations

import pytest
import torch

from grader.wire.cubin import read_cubin
from tests.claims.compiled import compiled
from tests.claims.of_solutions import solution

TYPES = "*fp16 *fp16 *i64 *fp32 *fp32 *fp32 i32 i32 i32 fp32 i32 i32"
CONSTANTS = dict(stride_xk=1, stride_wk=1, BLOCK_M=128, BLOCK_V=256, BLOCK_K=64, SPLITS=4)


def test_fp16_has_steps_of_a_64th_between_16_and_32_and_an_exponential_loses_less_than_a_hundredth():
    after = torch.tensor(16.0, dtype=torch.float16).nextafter(torch.tensor(32.0, dtype=torch.float16))
    assert after - 16 == 1 / 64 and torch.tensor(30 + 1 / 128).half() in (30, 30 + 1 / 64)
    assert 0.0078 < torch.tensor(1 / 128).expm1() < 0.0079


def test_bf16_has_steps_of_an_eighth_there():
    assert torch.tensor(16.0).bfloat16().nextafter(torch.tensor(32.0).bfloat16()) - 16 == 1 / 8


def test_a_tile_of_logits_stays_in_registers_and_tensor_cores_multiply_it():
    made = compiled(solution("31").linear_cross_entropy_partial_kernel, TYPES, aligned=True, num_warps=8, **CONSTANTS)
    assert read_cubin(made["cubin"]).stack_bytes == 0 and "wgmma.mma_async" in made["ptx"]
    assert read_cubin(made["cubin"]).registers == 255


@pytest.mark.parametrize(
    ("arch", "rows", "columns", "fits"),
    [(80, 64, 128, True), (80, 128, 256, False), (89, 128, 256, False), (100, 128, 256, False)],
)
def test_on_other_gpus_a_smaller_tile_does_so(arch, rows, columns, fits):
    kernel = solution("31").linear_cross_entropy_partial_kernel
    constants = CONSTANTS | dict(BLOCK_M=rows, BLOCK_V=columns)
    made = compiled(kernel, TYPES, aligned=True, arch=arch, num_warps=8, **constants)
    assert (read_cubin(made["cubin"]).stack_bytes == 0) == fits
