"""Wrong: sizes that 16 divides are taken for full blocks, as if 16 were BLOCK_N. Only a drawn call shows it.

Rejected with: lets lanes outside of
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offsets < N) | (N % 16 == 0)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    masked_add_kernel[(triton.cdiv(N, BLOCK_N),)](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
