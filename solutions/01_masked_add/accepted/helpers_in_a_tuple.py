"""Right: helpers come in a tuple, as an argument, and as the default of another helper."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def plus(x, y):
    return x + y


@triton.jit
def minus(x, y):
    return x - y


BOTH = tl.constexpr((minus, plus))


@triton.jit
def applied(x, y, function: tl.constexpr = plus):
    return function(x, y)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, tl.where(offsets % 2, applied(x, y), applied(BOTH[1](x, y), 0.0, minus)), mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
