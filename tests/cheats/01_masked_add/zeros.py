"""Cheat: all results are zero, and a kernel touches one element.

Rejected with: z is 0 everywhere
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def touch_kernel(z_ptr):
    tl.store(z_ptr, 0.0)


def masked_add(x, y):
    z = torch.zeros_like(x)
    touch_kernel[(min(1, x.numel()),)](z)
    return z
