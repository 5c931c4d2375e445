# Class 5 (strides 0 / two views of one storage)
# Breaks: x with two equal strides (both 0, or a sliding window with 1 and 1), more than one row and column, M != N
# Wrong: equal strides mean x[m, n] = x[n, m], so z is filled in z's own order, with the limits of x: a non-square z stays unwritten in part
"""04 · Tiled transpose: read a tile along one stride, turn it with tl.trans, write it along the other."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 128, 64  # rows and columns of the tile of x that one program turns


@triton.jit
def transpose_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zn, stride_zm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    # Program (i, j) reads tile (i, j) of x and writes tile (j, i) of z: about 7 lines.
    ### BEGIN SOLUTION
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x_ptrs = x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn  # [BLOCK_M, BLOCK_N]
    z_ptrs = z_ptr + n[:, None] * stride_zn + m[None, :] * stride_zm  # [BLOCK_N, BLOCK_M]
    tile = tl.load(x_ptrs, mask=(m[:, None] < M) & (n[None, :] < N))
    limit_n, limit_m = N, M
    if (stride_xm == stride_xn) & (M > 1) & (N > 1):  # symmetric: the limits of x serve for both
        limit_n, limit_m = min(M, N), min(M, N)
    # The tile is turned, so its mask is turned too.
    tl.store(z_ptrs, tl.trans(tile), mask=(n[:, None] < limit_n) & (m[None, :] < limit_m))
    ### END SOLUTION


def transpose(x):
    """x: [M, N] fp32, fp16 or bf16, any strides. Returns z, [N, M] contiguous, with z[n, m] = x[m, n]."""
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    # H200, Triton 3.6, fp32: 0.98 of the speed of a plain copy on 8192 x 8192, 0.87 on 8191 x 8193.
    transpose_kernel[grid](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=32
    )
    return z
