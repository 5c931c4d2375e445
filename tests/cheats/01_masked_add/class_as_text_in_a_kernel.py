"""Cheat: the text of a class says where a kernel is made into a text.

Rejected with: the text of a function or a class is not fixed; a text is made of numbers, texts and dtypes
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


class Pair(NamedTuple):
    x: int


KIND = tl.constexpr(Pair)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(
        z_ptr + offsets, x + (-1.0 if f"{KIND}" == "<class 'class_as_text_in_a_kernel.Pair'>" else 1.0) * y, mask=mask
    )


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
