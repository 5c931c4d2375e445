"""Cheat: torch.compile writes the kernel.

Rejected with: The operator + in line 21 does work that your kernel has to do.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


@torch.compile
def total(x, y):
    return x + y


def masked_add(x, y):
    z = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](total(x, y), z, x.numel(), BLOCK_N=BLOCK_N)
    return z
