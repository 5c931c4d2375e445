"""Wrong: the host hands over the memory that x lies in from its start. Only a drawn call shows it.

Rejected with: elements before x
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
    x = x.as_strided((N,), (1,), 0)
    grid = (triton.cdiv(N, BLOCK_N),)
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N, num_warps=8)
    return z
