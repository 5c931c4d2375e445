"""Cheat: the result is a view of the input, and a kernel runs beside it.

Rejected with: z shares its memory with x: it needs memory of its own
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def transpose(x):
    other = torch.empty_like(x)
    copy_kernel[(1,)](x, other, 1, BLOCK=1024)
    return x.t()
