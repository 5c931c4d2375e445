"""Right: one program per row, with a loop over blocks of columns from right to left."""

import triton
import triton.language as tl

BLOCK_N = 128


@triton.jit
def strided_copy_kernel(x_ptr, z_ptr, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * stride_xm
    z_row = z_ptr + row * stride_zm
    for block in range(tl.cdiv(N, BLOCK_N) - 1, -1, -1):
        cols = block * BLOCK_N + tl.arange(0, BLOCK_N)
        tl.store(z_row + cols * stride_zn, tl.load(x_row + cols * stride_xn, mask=cols < N), mask=cols < N)


def strided_copy(x, z):
    M, N = x.shape
    strided_copy_kernel[(M,)](x, z, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_N=BLOCK_N)
    return z
