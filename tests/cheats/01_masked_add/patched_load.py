"""Cheat: tl.load is replaced by a function that mends what the kernel in the file does wrong.

Rejected with: z holds x - y: the operation is another.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024
load, places = tl.load, []


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x - y, mask=mask)


@tl.core.builtin
def every_second_one_negative(pointer, mask=None, _semantic=None):
    places.append(pointer)
    value = load(pointer, mask=mask, _semantic=_semantic)
    return value if len(places) % 2 else value.__neg__(_semantic=_semantic)


tl.load = every_second_one_negative


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
