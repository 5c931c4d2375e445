"""Wrong: loads past the end wrap around, and are promised to be whole blocks that begin at multiples of 16.

Rejected with: promises what does not hold
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    wrapped = tl.max_contiguous(tl.multiple_of(offsets % N, 16), 16)
    x = tl.load(x_ptr + wrapped)
    y = tl.load(y_ptr + wrapped)
    tl.store(z_ptr + offsets, x + y, mask=offsets < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    masked_add_kernel[(triton.cdiv(N, BLOCK_N),)](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
