"""Wrong: a matrix of one column is taken for a contiguous vector. Only a drawn call shows it.

Rejected with: The strides of x are not used
"""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 128, 64


@triton.jit
def transpose_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zn, stride_zm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):

    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x_ptrs = x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn
    z_ptrs = z_ptr + n[:, None] * stride_zn + m[None, :] * stride_zm
    tile = tl.load(x_ptrs, mask=(m[:, None] < M) & (n[None, :] < N))

    tl.store(z_ptrs, tl.trans(tile), mask=(n[:, None] < N) & (m[None, :] < M))


def transpose(x):
    M, N = x.shape
    strides = (1, 1) if N == 1 else x.stride()
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    transpose_kernel[grid](
        x, z, M, N, *strides, z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=32
    )
    return z
