"""Cheat: a tuple holds a constexpr, which is no number for Python, and host code makes the tuple.

Rejected with: z holds x - y: the operation is another
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


def pair():
    return tl.constexpr(1.0), 2.0


PAIR = pair()


@triton.constexpr_function
def sign():
    return 1.0 if isinstance(PAIR[0], float) else -1.0


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
