"""Right: the partial sums are combined by a function of the file's own; the loop runs backwards."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def added(a, b):
    return a + b


@triton.jit
def row_sum_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    blocks = tl.cdiv(N, BLOCK_N)
    partial = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for i in range(blocks):
        cols = (blocks - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N)
        partial = added(partial, tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=0.0))
    tl.store(z_ptr + row, tl.reduce(partial, 0, added))


def row_sum(x):
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    row_sum_kernel[(M,)](x, z, M, N, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N, num_warps=8)
    return z
