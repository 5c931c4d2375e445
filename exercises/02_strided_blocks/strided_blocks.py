"""02 · Strided blocks: copy a matrix of any layout, one tile per program."""

import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 64, 64  # rows and columns of the tile that one program copies


@triton.jit
def strided_copy_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    # Program (j, i) copies the tile in block row i and block column j; axis 0 counts columns: about 7 lines.
    # YOUR CODE HERE
    pass


def strided_copy(x, z):
    """x, z: [M, N] of one dtype, any strides. Copies x into z and returns z."""
    M, N = x.shape
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))  # axis 0 goes along a row, as memory usually does
    # H200, Triton 3.6, 8192 x 8192 fp32: 0.99 of the speed of a plain copy, 0.98 where x is a transposed view.
    strided_copy_kernel[grid](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=16
    )
    return z
