"""06 · Fused outer product: tiles of relu(x[m] * y[n]), made of two short vectors and written once."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 128  # rows and columns of a tile: 128 neighbours of fp32 are 512 bytes in one stretch of z


@triton.jit
def outer_relu_kernel(
    x_ptr, y_ptr, z_ptr, M, N, stride_x, stride_y, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    # One program makes one tile of z from BLOCK_M values of x and BLOCK_N values of y: about 8 lines.
    # YOUR CODE HERE
    pass


def outer_relu(x, y):
    """x: [M], y: [N], fp32, fp16 or bf16, any stride. Returns z, [M, N] contiguous: z[m, n] = relu(x[m] * y[n])."""
    M, N = x.numel(), y.numel()
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    # How many tiles, and which axis counts what? grid = (..., ...): 1 line.
    # YOUR CODE HERE
    pass
    outer_relu_kernel[grid](
        x, y, z, M, N, x.stride(0), y.stride(0), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return z
