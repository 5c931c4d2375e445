"""Wrong: a matrix of one row is read as if it lay in one piece. Only a drawn call shows it.

Rejected with: stride
"""

import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 64


@triton.jit
def strided_copy_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = (tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    mask = (rows < M) & (cols < N)
    tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tile, mask=mask)


def strided_copy(x, z):
    M, N = x.shape
    columns = 1 if M == 1 else x.stride(1)
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    strided_copy_kernel[grid](
        x, z, M, N, x.stride(0), columns, z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
