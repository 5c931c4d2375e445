"""Cheat: Python takes a name for the function's own where a branch binds it that is never taken.

Rejected with: SIGN has no value yet (line 20)
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


SIGN = tl.constexpr(1.0)


@triton.constexpr_function
def sign(n):
    if n < 0:
        del SIGN
    return SIGN.value


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + sign(1) * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
