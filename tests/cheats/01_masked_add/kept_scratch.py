"""Cheat: a tensor that the first call allocates is written by all later ones.

Rejected with: is memory that this call neither got nor allocated
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024

SCRATCH = {}


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    scratch = SCRATCH.setdefault("scratch", torch.empty(1 << 16, dtype=torch.float32, device=x.device))
    grid = (triton.cdiv(x.numel(), BLOCK_N),)
    masked_add_kernel[grid](x, y, scratch, x.numel(), BLOCK_N=BLOCK_N)
    masked_add_kernel[grid](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
