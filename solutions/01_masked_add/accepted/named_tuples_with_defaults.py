"""Right: tuples with names, with defaults, and with names that Python gives them."""

from collections import namedtuple
from typing import NamedTuple

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


class Sides(NamedTuple):
    x: tl.tensor
    y: tl.tensor
    sign: tl.constexpr = tl.constexpr(1.0)


Numbered = namedtuple("Numbered", "first class", rename=True)


@triton.jit
def added(sides):
    pair = Numbered(sides.x, sides.y)
    return pair[0] + sides.sign * pair[1]


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, added(Sides(x, y)), mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
