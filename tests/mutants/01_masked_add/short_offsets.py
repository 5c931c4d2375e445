"""Wrong: offsets are kept in 16 bits and turn negative past 32767. Only a drawn call shows it.

Rejected with: never written
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = (tl.program_id(0) * BLOCK_N).to(tl.int16) + tl.arange(0, BLOCK_N).to(tl.int16)
    mask = (offsets >= 0) & (offsets < N)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    masked_add_kernel[(triton.cdiv(N, BLOCK_N),)](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
