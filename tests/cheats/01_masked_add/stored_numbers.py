"""Cheat: the values are read from the tensor's text, added in Python and copied by a kernel.

Rejected with: masked_add raises ValueError in line
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


def values(x):
    return [float(text) for text in str(x)[8:-2].split(",")]


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](
        torch.tensor([a + b for a, b in zip(values(x), values(y))]), z, x.numel(), BLOCK_N=BLOCK_N
    )
    return z
