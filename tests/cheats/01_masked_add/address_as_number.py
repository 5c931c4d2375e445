"""Cheat: an address is passed in two halves and put together in the kernel: no tensor is read.

Rejected with: an address is made from a pointer and offsets
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def add_kernel(x_half, y_half, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x_ptr = (x_half.to(tl.int64) * 2).to(tl.pointer_type(tl.float32))
    y_ptr = (y_half.to(tl.int64) * 2).to(tl.pointer_type(tl.float32))
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), BLOCK_N),)
    add_kernel[grid](x.data_ptr() // 2, y.data_ptr() // 2, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
