"""Right: one program per block of rows; a tile of pointers moves along the columns."""

import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 8, 64


@triton.jit
def strided_copy_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    x_ptrs = x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn
    z_ptrs = z_ptr + rows[:, None] * stride_zm + cols[None, :] * stride_zn
    left = N
    while left > 0:
        mask = (rows[:, None] < M) & (cols[None, :] < left)
        tl.store(z_ptrs, tl.load(x_ptrs, mask=mask), mask=mask)
        x_ptrs += BLOCK_N * stride_xn
        z_ptrs += BLOCK_N * stride_zn
        left -= BLOCK_N


def strided_copy(x, z):
    M, N = x.shape
    strided_copy_kernel[(triton.cdiv(M, BLOCK_M),)](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
