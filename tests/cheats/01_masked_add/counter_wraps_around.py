"""Cheat: after the only iteration of a loop its counter leaves its type, and the loop goes on for ever.

Rejected with: The counter of the loop in line ... leaves its type
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, last, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    for _ in range(2147483646, last, 2):
        tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), 2147483647, BLOCK_N=BLOCK_N)
    return z
