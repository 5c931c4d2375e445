"""Right: the kernel is a strided copy, and the host function gives it a transposed view of x."""

import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 64


@triton.jit
def transpose_kernel(
    y_ptr, z_ptr, N, M, stride_yn, stride_ym, stride_zn, stride_zm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[:, None]
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[None, :]
    mask = (n < N) & (m < M)
    tile = tl.load(y_ptr + n * stride_yn + m * stride_ym, mask=mask)
    tl.store(z_ptr + n * stride_zn + m * stride_zm, tile, mask=mask)


def transpose(x):
    y = x.t()
    N, M = y.shape
    z = y.new_empty((N, M))
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    transpose_kernel[grid](y, z, N, M, *y.stride(), *z.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return z
