"""Right: tl.maximum, told to keep NaN, of a product in fp32."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 128


@triton.jit
def relu(v):
    return tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def outer_relu_kernel(
    x_ptr, y_ptr, z_ptr, M, N, stride_x, stride_y, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    x = tl.load(x_ptr + rows * stride_x, mask=rows < M).to(tl.float32)
    y = tl.load(y_ptr + cols * stride_y, mask=cols < N).to(tl.float32)
    tl.store(z_ptr + rows * stride_zm + cols * stride_zn, relu(x * y), mask=(rows < M) & (cols < N))


def outer_relu(x, y):
    M, N = x.numel(), y.numel()
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    outer_relu_kernel[grid](
        x, y, z, M, N, x.stride(0), y.stride(0), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=8
    )
    return z
