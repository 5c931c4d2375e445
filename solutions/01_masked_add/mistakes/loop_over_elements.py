"""Wrong: each program loops over its elements, one at a time.

Finding: scattered

Rejected with: 100 % of the bytes of x are moved by loads and stores of at most 32 bytes each
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    for step in range(BLOCK_N):
        i = tl.program_id(0) * BLOCK_N + step
        if i < N:
            tl.store(z_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    masked_add_kernel[(triton.cdiv(N, BLOCK_N),)](x, y, z, N, BLOCK_N=BLOCK_N, num_warps=8)
    return z
