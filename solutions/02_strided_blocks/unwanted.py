"""Kept out by the gate: tiles of 8 x 8, the textbook's first choice for threads, far too small for programs."""

import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 8, 8


@triton.jit
def strided_copy_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    # Program (i, j) copies the tile in block row i and block column j: about 6 lines.
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]  # [BLOCK_M, 1]
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]  # [1, BLOCK_N]
    mask = (rows < M) & (cols < N)  # & and not `and`: a mask is a tile of bits, not one truth
    tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tile, mask=mask)


def strided_copy(x, z):
    """x, z: [M, N] of one dtype, any strides. Copies x into z and returns z."""
    M, N = x.shape
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    strided_copy_kernel[grid](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
