"""Right: one launch leaves a maximum and a sum per row, a second one has a program for every block of the results."""

import torch
import triton
import triton.language as tl

BLOCK_N = 4096


@triton.jit
def softmax_statistics_kernel(x_ptr, greatest_ptr, total_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(greatest, tl.max(x, 0))
        shift = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(greatest - shift) + tl.sum(tl.exp(x - shift), 0)
        greatest = larger
    tl.store(greatest_ptr + row, greatest)
    tl.store(total_ptr + row, total)


@triton.jit
def softmax_kernel(x_ptr, z_ptr, greatest_ptr, total_ptr, N, stride_xm, stride_xn, stride_zm, BLOCK_N: tl.constexpr):
    blocks = tl.cdiv(N, BLOCK_N)
    row = tl.program_id(0) // blocks
    cols = tl.program_id(0) % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N).to(tl.float32)
    z = tl.exp(x - tl.load(greatest_ptr + row)) / tl.load(total_ptr + row)
    tl.store(z_ptr + row * stride_zm + cols, z, mask=cols < N)


def softmax(x):
    M, N = x.shape
    greatest, total = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_statistics_kernel[(M,)](x, greatest, total, N, *x.stride(), BLOCK_N=BLOCK_N, num_warps=8)
    grid = (M * triton.cdiv(N, BLOCK_N),)
    softmax_kernel[grid](x, z, greatest, total, N, *x.stride(), z.stride(0), BLOCK_N=BLOCK_N, num_warps=8)
    return z
