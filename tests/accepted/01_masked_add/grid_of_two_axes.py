"""Right: the blocks are spread over a 2-D grid."""

import torch
import triton
import triton.language as tl

BLOCK_N = 256


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    block = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    offsets = block * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    blocks = triton.cdiv(N, BLOCK_N)
    columns = next(n for n in (4, 3, 2, 1) if blocks % n == 0)
    masked_add_kernel[blocks // columns, columns](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
