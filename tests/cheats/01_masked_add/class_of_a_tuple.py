"""Cheat: a constexpr function asks for the class of a tuple with names, which host code has made.

Rejected with: a constexpr function cannot hold `isinstance(pair, Pair)` here: the class of a tuple
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


class Pair(NamedTuple):
    x: int
    y: int


@triton.constexpr_function
def sign(pair):
    return -1.0 if isinstance(pair, Pair) else 1.0


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr, PAIR: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + sign(PAIR) * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N, PAIR=Pair(1, 2))
    return z
