"""Right: no `other`: where there is no column the partial sum stays, as torch.compile writes it."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 1, 2048


@triton.jit
def row_sum_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    base = tl.arange(0, BLOCK_N)[None, :]
    partial = tl.full([BLOCK_M, BLOCK_N], 0, tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + base
        mask = (rows < M) & (cols < N)
        x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask, eviction_policy="evict_first").to(tl.float32)
        partial = tl.where(mask, partial + x, partial)
    tl.store(z_ptr + rows, tl.sum(partial, 1)[:, None], rows < M)


def row_sum(x):
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    row_sum_kernel[(triton.cdiv(M, BLOCK_M),)](
        x, z, M, N, x.stride(0), x.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=8
    )
    return z
