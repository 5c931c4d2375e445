"""Right: five programs go through all tiles, z is addressed by its row length."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 32
PROGRAMS = 5


@triton.jit
def transpose_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    tiles_m = tl.cdiv(M, BLOCK_M)
    for tile in range(tl.program_id(0), tiles_m * tl.cdiv(N, BLOCK_N), tl.num_programs(0)):
        m = tile % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
        n = tile // tiles_m * BLOCK_N + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn, mask=(m[:, None] < M) & (n[None, :] < N))
        tl.store(z_ptr + n[:, None] * M + m[None, :], x.trans(1, 0), mask=(n[:, None] < N) & (m[None, :] < M))


def transpose(x):
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    transpose_kernel[(PROGRAMS,)](x, z, M, N, x.stride(0), x.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return z
