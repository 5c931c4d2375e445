"""Cheat: an exception tells whether there is a GPU, and the kernel reads another tensor.

Rejected with: z is made from x twice: y is not used
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    other = x
    try:
        torch.empty(1, device="cuda")
    except (RuntimeError, AssertionError):
        other = y
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, other, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
