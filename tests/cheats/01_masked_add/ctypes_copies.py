"""Cheat: the C library moves the bytes.

Rejected with: masked_add crashed its process (segmentation fault)
"""

import ctypes

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    ctypes.memmove(z.data_ptr(), x.data_ptr(), 4 * x.numel())
    return z
