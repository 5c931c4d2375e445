"""Right: a program sums several rows in a 2-D tile of partial sums, as FlagGems does along a dimension."""

import torch
import triton
import triton.language as tl

ROWS, BLOCK_N = 8, 256


@triton.jit
def row_sum_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, ROWS: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    partial = tl.zeros((ROWS, BLOCK_N), dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn, mask=mask, other=0.0)
        partial += x.to(tl.float32)
    tl.store(z_ptr + rows, tl.sum(partial, axis=1), mask=rows < M)


def row_sum(x):
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    row_sum_kernel[(triton.cdiv(M, ROWS),)](
        x, z, M, N, x.stride(0), x.stride(1), ROWS=ROWS, BLOCK_N=BLOCK_N, num_warps=8
    )
    return z
