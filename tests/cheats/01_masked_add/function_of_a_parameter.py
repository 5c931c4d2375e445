"""Cheat: jit makes a helper of whatever a function is given.

Rejected with: helper is changed after it was made.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


def added(x, y):
    return x + y


def subtracted(x, y):
    return x - y


def made(added):
    helper = triton.jit(added)
    helper.fn.__name__, helper.fn.__code__ = "added", ADDED

    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = offsets < N
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(z_ptr + offsets, helper(x, y), mask=mask)

    return kernel


ADDED = added.__code__
masked_add_kernel = made(subtracted)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
