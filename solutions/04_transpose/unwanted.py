"""Kept out by the gate: a program turns a few whole rows, so that its stores are scattered."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 4, 256


@triton.jit
def transpose_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zn, stride_zm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    # Program (i, j) reads tile (i, j) of x and writes tile (j, i) of z: about 7 lines.
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x_ptrs = x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn  # [BLOCK_M, BLOCK_N]
    z_ptrs = z_ptr + n[:, None] * stride_zn + m[None, :] * stride_zm  # [BLOCK_N, BLOCK_M]
    tile = tl.load(x_ptrs, mask=(m[:, None] < M) & (n[None, :] < N))
    # The tile is turned, so its mask is turned too.
    tl.store(z_ptrs, tl.trans(tile), mask=(n[:, None] < N) & (m[None, :] < M))


def transpose(x):
    """x: [M, N] fp32 or fp16, any strides. Returns z, [N, M] contiguous, with z[n, m] = x[m, n]."""
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    transpose_kernel[grid](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
