"""Wrong: a block of flat indices of z: right values, but neighbouring lanes load from different rows of x.

Rejected with: bytes of x are moved for each byte used; 1.5 are enough
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def transpose_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    flat = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = flat < M * N
    n = flat // M
    m = flat - n * M
    tl.store(z_ptr + flat, tl.load(x_ptr + m * stride_xm + n * stride_xn, mask=inside), mask=inside)


def transpose(x):
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M * N, BLOCK),)
    transpose_kernel[grid](x, z, M, N, x.stride(0), x.stride(1), BLOCK=BLOCK)
    return z
