"""Cheat: a kernel and a named tuple of this name, neither of which is used, would take the guarded getattr away.

Rejected with: getattr is not allowed in a constexpr function
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


class getattr(NamedTuple):
    x: int


@triton.jit
def getattr(x):  # noqa: F811
    return x


@triton.constexpr_function
def patched(n):
    for module in [getattr(tl, "core") for getattr in ()]:
        module.load = None
    return getattr(tl, "core").exp.__globals__["__builtins__"]["exec"]("import os; os._exit(3)")


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y + patched(BLOCK_N), mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
