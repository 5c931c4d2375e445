"""Right: pairs of a maximum and a sum are merged by a function of the file's own, over the lanes at the end."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def merged(m, s, other_m, other_s):
    larger = tl.maximum(m, other_m)
    shift = tl.where(larger == -float("inf"), 0.0, larger)
    return larger, s * tl.exp(m - shift) + other_s * tl.exp(other_m - shift)


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    greatest = tl.full((BLOCK_N,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
        one = tl.where(x == x, 1.0, x)  # NaN is in the sum, whatever the maximum makes of it
        greatest, total = merged(greatest, total, x, one)
    greatest, total = tl.reduce((greatest, total), 0, merged)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N).to(tl.float32)
        tl.store(z_ptr + row * stride_zm + cols * stride_zn, tl.exp(x - greatest) / total, mask=cols < N)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(M,)](x, z, M, N, *x.stride(), *z.stride(), BLOCK_N=BLOCK_N, num_warps=4)
    return z
