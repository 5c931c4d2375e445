"""Right: several programs per row leave a partial sum each; a second launch adds these up."""

import torch
import triton
import triton.language as tl

BLOCK_N, PARTS = 1024, 64  # of a row: so many programs at most


@triton.jit
def row_sum_part_kernel(x_ptr, part_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(part * BLOCK_N, N, parts * BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        total += tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=0.0)
    tl.store(part_ptr + row * parts + part, tl.sum(total, 0))


@triton.jit
def row_sum_kernel(part_ptr, z_ptr, parts, PARTS: tl.constexpr):
    row, part = tl.program_id(0), tl.arange(0, PARTS)
    x = tl.load(part_ptr + row * parts + part, mask=part < parts, other=0.0)
    tl.store(z_ptr + row, tl.sum(x, 0))


def row_sum(x):
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    parts = min(triton.cdiv(N, BLOCK_N), PARTS)
    scratch = torch.empty((M, parts), dtype=torch.float32, device=x.device)
    row_sum_part_kernel[(M, parts)](x, scratch, N, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
    row_sum_kernel[(M,)](scratch, z, parts, PARTS=PARTS)
    return z
