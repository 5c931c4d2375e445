"""Right: the scratch is as long as the block that reads it, filled with what is neutral: its loads need no mask."""

import torch
import triton
import triton.language as tl

BLOCK_N = 8192


@triton.jit
def softmax_partial_kernel(x_ptr, max_ptr, sum_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, 0)
    if largest > -float("inf"):
        tl.store(max_ptr + p, largest)
        tl.store(sum_ptr + p, tl.sum(tl.exp(x - largest), 0))
    if tl.max((x != x).to(tl.int32), 0) > 0:  # the maximum of NaN and -inf is -inf
        tl.store(max_ptr + p, float("nan"))


@triton.jit
def softmax_combine_kernel(max_ptr, sum_ptr, total_ptr, BLOCK_P: tl.constexpr):
    parts = tl.arange(0, BLOCK_P)
    maxima = tl.load(max_ptr + parts)
    largest = tl.max(maxima, 0)
    total = tl.sum(tl.load(sum_ptr + parts) * tl.exp(maxima - largest), 0)
    tl.store(total_ptr + tl.arange(0, 2), tl.where(tl.arange(0, 2) == 0, largest, total))


@triton.jit
def softmax_scale_kernel(x_ptr, total_ptr, z_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=0.0).to(tl.float32)
    tl.store(z_ptr + i, tl.exp(x - tl.load(total_ptr)) * (1 / tl.load(total_ptr + 1)), mask=i < N)


def softmax(x):
    (N,) = x.shape
    P = triton.cdiv(N, BLOCK_N)
    lanes = triton.next_power_of_2(P)
    maxima = torch.full((lanes,), -float("inf"), dtype=torch.float32, device=x.device)
    sums = torch.zeros(lanes, dtype=torch.float32, device=x.device)
    total = torch.empty(2, dtype=torch.float32, device=x.device)
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    softmax_partial_kernel[(P,)](x, maxima, sums, N, x.stride(0), BLOCK_N=BLOCK_N, num_warps=8)
    softmax_combine_kernel[(1,)](maxima, sums, total, BLOCK_P=lanes, num_warps=16)
    softmax_scale_kernel[(P,)](x, total, z, N, x.stride(0), BLOCK_N=BLOCK_N, num_warps=8)
    return z
