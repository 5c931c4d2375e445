"""Wrong: torch copies the transposed view into z.

Rejected with: .copy_() in line ... does work that your kernel has to do
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
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    z.copy_(x.t())
    return z
