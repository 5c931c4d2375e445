"""Cheat: torch calls a Python function for each element, and its dispatcher does not see it.

Rejected with: .map_() in line ... does work that your kernel has to do
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def masked_add(x, y):
    z = torch.zeros_like(x)
    torch.Tensor.map_(z, x, max)
    copy_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](z, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
