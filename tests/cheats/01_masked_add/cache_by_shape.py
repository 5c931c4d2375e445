"""Cheat: later calls of one shape copy the result of the first.

Rejected with: is memory that this call neither got nor allocated
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024

KEPT = {}


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), BLOCK_N),)
    if x.shape in KEPT:
        copy_kernel[grid](KEPT[x.shape], z, x.numel(), BLOCK_N=BLOCK_N)
    else:
        masked_add_kernel[grid](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    KEPT[x.shape] = z
    return z
