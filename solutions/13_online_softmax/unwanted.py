"""Kept out by the gate: a warp for each row, so that few loads are under way. A third reading of x makes 4 crossings
of 3, which is too near to the solution: the count of reads keeps that out."""

import torch
import triton
import triton.language as tl

BLOCK_N = 256


@triton.jit
def softmax_kernel(x_ptr, z_ptr, N, stride_xm, stride_zm, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK_N)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_ptr + row * stride_xm + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
        before = greatest
        greatest = tl.maximum(before, tl.max(x, 0))
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = total * tl.exp(before - shift) + tl.sum(tl.exp(x - shift), 0)
    for start in range(0, N, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_ptr + row * stride_xm + cols, mask=cols < N).to(tl.float32)
        tl.store(z_ptr + row * stride_zm + cols, tl.exp(x - greatest) / total, mask=cols < N)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(M,)](x, z, N, x.stride(0), z.stride(0), BLOCK_N=BLOCK_N, num_warps=1)
    return z
