"""Right: lanes past the end load the last element again instead of being masked off."""

import torch
import triton
import triton.language as tl

BLOCK_N = 512


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = tl.minimum(offsets, N - 1)
    z = tl.load(x_ptr + inside) + tl.load(y_ptr + inside)
    tl.store(z_ptr + offsets, z, mask=offsets < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    grid = (-(-N // BLOCK_N),)
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
