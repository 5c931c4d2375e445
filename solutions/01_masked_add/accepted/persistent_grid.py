"""Right: at most three programs, each goes through several blocks."""

import torch
import triton
import triton.language as tl

BLOCK_N = 128
MOST_PROGRAMS = 3


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    blocks = (N - 1) // BLOCK_N + 1  # tl.cdiv adds BLOCK_N - 1 to N first, which may leave int32
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        offsets = block * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = offsets < N
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    grid = (min(MOST_PROGRAMS, triton.cdiv(N, BLOCK_N)),)
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
