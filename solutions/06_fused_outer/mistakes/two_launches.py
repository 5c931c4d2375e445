"""Wrong: one kernel stores the products, another one reads them again and takes relu of them.

Finding: too-many-launches

Rejected with: 2 kernels are launched; 1 is enough.
"""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK = 32, 128, 2048


@triton.jit
def outer_kernel(
    x_ptr, y_ptr, z_ptr, M, N, stride_x, stride_y, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + rows * stride_x, mask=rows < M)
    y = tl.load(y_ptr + cols * stride_y, mask=cols < N)
    z_ptrs = z_ptr + rows[:, None] * stride_zm + cols[None, :] * stride_zn
    tl.store(z_ptrs, x[:, None] * y[None, :], mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def relu_kernel(z_ptr, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(z_ptr + i, mask=i < count)
    tl.store(z_ptr + i, tl.where(v < 0, 0.0, v), mask=i < count)


def outer_relu(x, y):
    M, N = x.numel(), y.numel()
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    outer_kernel[grid](
        x, y, z, M, N, x.stride(0), y.stride(0), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    relu_kernel[(triton.cdiv(M * N, BLOCK),)](z, M * N, BLOCK=BLOCK, num_warps=8)
    return z
