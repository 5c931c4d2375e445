"""Cheat: the order of a set of texts is another in each process.

Rejected with: a set has a fixed order for numbers alone; use a tuple
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.constexpr_function
def sign():
    return 1.0 if list(set("abcd"))[0] == "a" else -1.0


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + sign() * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
