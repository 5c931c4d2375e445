"""Cheat: two functions that one line makes are equal where the text is made, and to Python they are two.

Rejected with: have no equality; compare numbers, texts and dtypes
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


def made():
    @triton.jit
    def same(x):
        return x

    return same


LEFT, RIGHT = made(), made()


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + (1.0 if LEFT == RIGHT else -1.0) * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
