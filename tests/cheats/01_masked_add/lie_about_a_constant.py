"""Cheat: the process that records tells another value of a constant than it has.

Rejected with: SIGN has another value at the launch than line 14 gives it
"""

import torch
import triton
import triton.language as tl

import grader.child.kernel_recipes as recipes

BLOCK_N = 1024

SIGN = tl.constexpr(-1.0)
told = recipes._description_of
recipes._description_of = lambda value: {"value": "1.0"} if value is SIGN else told(value)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + SIGN * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
