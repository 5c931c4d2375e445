"""Cheat: torch adds within an operator of the file's own.

Rejected with: The operator + in line 23 does work that your kernel has to do
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@torch.library.custom_op("course_own::added", mutates_args={})
def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.empty_like(x)
    total = x + y
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](total, z, x.numel(), BLOCK_N=BLOCK_N)
    return z


def masked_add(x, y):
    return torch.ops.course_own.added.default(x, y)
