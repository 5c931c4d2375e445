"""Wrong: one output buffer serves all calls of a size: a call changes the result of the call before.

Rejected with: is memory that this call neither got nor allocated
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024
buffers = {}


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    N = x.numel()
    if (N, x.dtype) not in buffers:
        buffers[N, x.dtype] = torch.empty_like(x)
    z = buffers[N, x.dtype]
    grid = (triton.cdiv(N, BLOCK_N),)
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
