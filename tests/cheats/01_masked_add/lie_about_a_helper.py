"""Cheat: the process that records tells another helper than a branch has taken.

Rejected with: added has another value at the launch than line 22 gives it
"""

import torch
import triton
import triton.language as tl

import grader.child.kernel_recipes as recipes

BLOCK_N = 1024


@triton.jit
def right(x, y):
    return x + y


if recipes:

    @triton.jit
    def added(x, y):
        return x - y


told = recipes._description_of
recipes._description_of = lambda value: told(right if value is added else value)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, added(x, y), mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
