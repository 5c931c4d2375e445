"""Right: a grid with one axis, as generated kernels have it; each program splits its number into row and column of
tiles, and expand_dims builds the tile."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 16, 256


@triton.jit
def outer_relu_kernel(
    x_ptr, y_ptr, z_ptr, M, N, stride_x, stride_y, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    across = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // across * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) % across * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.expand_dims(tl.load(x_ptr + rows * stride_x, mask=rows < M), 1)
    y = tl.expand_dims(tl.load(y_ptr + cols * stride_y, mask=cols < N), 0)
    x, y = tl.broadcast(x, y)
    v = x * y
    z_ptrs = z_ptr + rows[:, None] * stride_zm + cols[None, :] * stride_zn
    tl.store(z_ptrs, tl.where(v <= 0, 0.0, v), mask=(rows[:, None] < M) & (cols[None, :] < N))


def outer_relu(x, y):
    M, N = x.numel(), y.numel()
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    outer_relu_kernel[grid](
        x, y, z, M, N, x.stride(0), y.stride(0), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
