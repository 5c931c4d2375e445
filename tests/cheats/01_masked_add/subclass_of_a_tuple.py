"""Cheat: a class under a tuple with names has a property where the tuple has a part.

Rejected with: PAIR is an object of the class Other
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


class Pair(NamedTuple):
    x: int
    y: int


class Other(Pair):
    x = property(lambda self: -1)


@triton.constexpr_function
def sign(pair):
    return pair.x


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr, PAIR: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + sign(PAIR) * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N, PAIR=Other(1, 2))
    return z
