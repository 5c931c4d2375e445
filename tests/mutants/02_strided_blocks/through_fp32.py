"""Wrong: every value goes through fp32. Only drawn calls in fp64 and int32 show it.

Rejected with: went through fp32
"""

import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 64, 64


@triton.jit
def strided_copy_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (cols < N)
    tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask).to(tl.float32)
    tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tile, mask=mask)


def strided_copy(x, z):
    M, N = x.shape
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    strided_copy_kernel[grid](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=16
    )
    return z
