"""Right: the grid runs over the tiles of z; tl.permute turns the tile."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 128


@triton.jit
def transpose_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zn, stride_zm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tile = tl.load(x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn, mask=inside, other=0.0)
    z_ptrs = z_ptr + n[:, None] * stride_zn + m[None, :] * stride_zm
    tl.store(z_ptrs, tl.permute(tile, 1, 0), mask=tl.permute(inside, 1, 0))


def transpose(x):
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    transpose_kernel[grid](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
