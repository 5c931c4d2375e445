"""Right: the tile as puzzles on outer products draw it, x along the row and y down the column; z's pointers follow."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 128


@triton.jit
def outer_relu_kernel(
    x_ptr, y_ptr, z_ptr, M, N, stride_x, stride_y, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + m * stride_x, mask=m < M)
    y = tl.load(y_ptr + n * stride_y, mask=n < N)
    v = x[None, :] * y[:, None]
    z_ptrs = z_ptr + m[None, :] * stride_zm + n[:, None] * stride_zn
    tl.store(z_ptrs, tl.where(v >= 0, v, tl.where(v != v, v, 0.0)), mask=(m[None, :] < M) & (n[:, None] < N))


def outer_relu(x, y):
    M, N = x.numel(), y.numel()
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    outer_relu_kernel[grid](
        x, y, z, M, N, x.stride(0), y.stride(0), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
