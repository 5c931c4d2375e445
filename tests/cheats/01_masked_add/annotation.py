"""Cheat: an annotation is evaluated at import, and opens a file.

Rejected with: z holds x itself, unchanged
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def total(x: open(__file__).read(), y):
    return x


def masked_add(x, y):
    z = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](total(x, y), z, x.numel(), BLOCK_N=BLOCK_N)
    return z
