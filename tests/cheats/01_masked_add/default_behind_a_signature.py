"""Cheat: a constexpr function has another default than the signature that it shows.

Rejected with: the default of value is hidden by a signature of its own
"""

import inspect

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.constexpr_function
def sign(value=1.0):
    return value


sign.fn.__signature__ = inspect.signature(sign.fn)
sign.fn.__defaults__ = (-1.0,)


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
