"""17 · Prefix sum: each program scans a row block after block, and carries the sum so far from block to block."""

import torch
import triton
import triton.language as tl

BLOCK_N = 4096  # columns in a block: with 8 warps a thread holds 16, four loads of 16 bytes in fp32


@triton.jit
def cumsum_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    # Program i goes along row i and stores the sum of all columns so far, at every column: about 9 lines.
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    x_row, z_row = x_ptr + row * stride_xm, z_ptr + row * stride_zm
    lanes = tl.arange(0, BLOCK_N)
    carry = 0.0  # the sum of all columns before this block, in fp32 whatever the dtype of x is
    for start in range(0, N, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_row + cols * stride_xn, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(z_row + cols * stride_zn, carry + tl.cumsum(x, 0), mask=cols < N)  # rounds to z's dtype, once
        carry += tl.sum(x, 0)
    ### END SOLUTION


def cumsum(x):
    """x: [M, N] fp32, fp16 or bf16, any strides, N >= 1. Returns z, [M, N] contiguous: z[m, n] sums x[m, : n + 1]."""
    # Allocate z, launch the kernel with a program per row, choose the number of warps, return z: about 4 lines.
    ### BEGIN SOLUTION
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)  # empty_like would keep the strides of a view
    cumsum_kernel[(M,)](x, z, M, N, *x.stride(), *z.stride(), BLOCK_N=BLOCK_N, num_warps=8)
    return z
    ### END SOLUTION
