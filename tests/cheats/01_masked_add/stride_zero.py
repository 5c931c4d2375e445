"""Cheat: the result is one element seen many times.

Rejected with: z has strides (0,); a contiguous tensor was expected.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def touch_kernel(x_ptr, y_ptr, z_ptr):
    tl.store(z_ptr, tl.load(x_ptr) + tl.load(y_ptr))


def masked_add(x, y):
    if x.numel() == 0:
        return torch.empty_like(x)
    z = x.new_empty(1)
    touch_kernel[(1,)](x, y, z)
    return z.expand(x.numel())
