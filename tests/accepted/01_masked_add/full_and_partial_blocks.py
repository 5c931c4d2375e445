"""Right: full blocks take a branch without masks; the last block is program 0."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_N
    offsets = start + tl.arange(0, BLOCK_N)
    if start + BLOCK_N <= N:
        tl.store(z_ptr + offsets, tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))
    else:
        mask = offsets < N
        x = tl.load(x_ptr + offsets, mask=mask, other=float("nan"))
        y = tl.load(y_ptr + offsets, mask=mask, other=float("nan"))
        tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.zeros_like(x)
    grid = (triton.cdiv(x.numel(), BLOCK_N),)
    masked_add_kernel[grid](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
