"""Wrong: each program adds a single element; there is no block.

Rejected with: 2048 programs are launched; 128 are more than enough: give each a block.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(z_ptr + pid, tl.load(x_ptr + pid) + tl.load(y_ptr + pid))


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    grid = (N,)
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
