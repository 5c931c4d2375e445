"""Cheat: every probability is 1 / N: within a loose tolerance on flat rows.

Rejected with: z is ... everywhere
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_kernel(z_ptr, size, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + offsets, tl.full((BLOCK,), 1.0, tl.float32) / N, mask=offsets < size)


def softmax(x):
    z = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    fill_kernel[(triton.cdiv(x.numel(), 1024),)](z, x.numel(), x.shape[1], BLOCK=1024)
    return z
