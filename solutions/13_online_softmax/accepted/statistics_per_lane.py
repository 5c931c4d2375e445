"""Right: each lane keeps a maximum and a sum of its own, merged when the row is done, as FlagGems does it."""

import torch
import triton
import triton.language as tl

BLOCK_N = 2048


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    greatest = tl.full((BLOCK_N,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
        larger = tl.where(x != x, x, tl.maximum(greatest, x))
        nothing_yet = larger == -float("inf")
        total = tl.where(nothing_yet, total, total * tl.exp(greatest - larger) + tl.exp(x - larger))
        greatest = larger
    of_row = tl.max(greatest, 0)
    total = tl.sum(tl.where(total == 0, 0.0, total * tl.exp(greatest - of_row)), 0)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, eviction_policy="evict_first")
        z = tl.exp(x.to(tl.float32) - of_row) / total
        tl.store(z_ptr + row * stride_zm + cols * stride_zn, z, mask=cols < N)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(M,)](x, z, M, N, *x.stride(), *z.stride(), BLOCK_N=BLOCK_N, num_warps=8)
    return z
