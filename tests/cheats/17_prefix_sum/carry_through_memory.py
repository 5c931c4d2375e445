"""Cheat: each iteration of a pipelined loop loads the carry that the one before stores, and begins before that store.

Rejected with: The load in line ... reads what an earlier iteration has stored in line
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 4096


@triton.jit
def cumsum_kernel(x_ptr, z_ptr, carries_ptr, N, blocks, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK_N)
    carry_ptr = carries_ptr + row * blocks * BLOCK_N + lanes
    tl.store(carry_ptr, tl.zeros((BLOCK_N,), tl.float32))
    for start in tl.range(0, N, BLOCK_N, num_stages=3):
        cols = start + lanes
        carry = tl.load(carry_ptr + start)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(z_ptr + row * N + cols, carry + tl.cumsum(x, 0), mask=cols < N)
        tl.store(carry_ptr + start + BLOCK_N, carry + tl.sum(x, 0))


def cumsum(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    blocks = triton.cdiv(N, BLOCK_N) + 1
    carries = torch.empty((M, blocks * BLOCK_N), dtype=torch.float32, device=x.device)
    cumsum_kernel[(M,)](x, z, carries, N, blocks, *x.stride(), BLOCK_N=BLOCK_N, num_warps=8)
    return z
