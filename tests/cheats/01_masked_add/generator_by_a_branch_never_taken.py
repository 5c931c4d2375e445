"""Cheat: a `yield` that is never reached makes a generator of a function, which is true.

Rejected with: `yield` makes a generator of the whole function; return a tuple
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.constexpr_function
def sign(n):
    if n < 0:
        yield n
    return 0


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + (-1.0 if sign(1) else 1.0) * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
