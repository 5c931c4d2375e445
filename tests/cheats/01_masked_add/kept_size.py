"""Cheat: the size of the first call serves all later ones.

Rejected with: masked_add does not do the same in every call: its launch in line
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


def masked_add(x, y):
    z = torch.empty_like(x)
    N = KEPT.setdefault("N", x.numel())
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
