"""Wrong: one row of x per program: right values, but each element is stored alone.

Rejected with: 8 bytes of z are moved for each byte used; 1.5 are enough
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 256


@triton.jit
def transpose_kernel(x_ptr, z_ptr, N, stride_xm, stride_xn, stride_zn, stride_zm, BLOCK_N: tl.constexpr):
    m = tl.program_id(0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.load(x_ptr + m * stride_xm + n * stride_xn, mask=n < N)
    tl.store(z_ptr + n * stride_zn + m * stride_zm, row, mask=n < N)


def transpose(x):
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (M, triton.cdiv(N, BLOCK_N))
    transpose_kernel[grid](x, z, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_N=BLOCK_N)
    return z
