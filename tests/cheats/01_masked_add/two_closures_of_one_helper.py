"""Cheat: one helper is made twice, with another constant each time: a recipe cannot tell them apart.

Rejected with: sign is another value in each function that is made of these lines
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


def made(sign):
    @triton.jit
    def signed(x):
        return sign * x

    return signed


plus, minus = made(tl.constexpr(1.0)), made(tl.constexpr(-1.0))


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, plus(x) + minus(y), mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
