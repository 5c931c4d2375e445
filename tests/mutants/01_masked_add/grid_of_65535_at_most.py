"""Wrong: the grid has at most 65535 programs. Only sizes that a GPU gets through show it.

Rejected with: z is not covered by a grid of 65535 programs
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    grid = (min(triton.cdiv(N, BLOCK_N), 65535),)
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N, num_warps=8)
    return z
