"""Right: a launch for the maxima, one for the sums at their common maximum, one that adds these and scales."""

import torch
import triton
import triton.language as tl

BLOCK_N = 32768


@triton.jit
def softmax_partial_kernel(x_ptr, part_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, 0)
    e = tl.exp2((x - tl.where(largest == -float("inf"), 0.0, largest)) * 1.4426950408889634)
    tl.store(part_ptr + p, largest)
    tl.store(part_ptr + tl.num_programs(0) + p, tl.sum(e, 0))


@triton.jit
def softmax_maximum_kernel(part_ptr, total_ptr, P, BLOCK_P: tl.constexpr):
    parts = tl.arange(0, BLOCK_P)
    tl.store(total_ptr, tl.max(tl.load(part_ptr + parts, mask=parts < P, other=-float("inf")), 0))


@triton.jit
def softmax_sum_kernel(part_ptr, total_ptr, P, BLOCK_P: tl.constexpr):
    parts = tl.arange(0, BLOCK_P)
    maxima = tl.load(part_ptr + parts, mask=parts < P, other=-float("inf"))
    sums = tl.load(part_ptr + P + parts, mask=parts < P, other=0.0)
    tl.store(total_ptr + 1, tl.sum(sums * tl.exp(maxima - tl.load(total_ptr)), 0))


@triton.jit
def softmax_scale_kernel(x_ptr, total_ptr, z_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    p = tl.num_programs(0) - 1 - tl.program_id(0)  # the blocks that were read last may still be in the cache
    i = p * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=0.0).to(tl.float32)
    e = tl.exp2((x - tl.load(total_ptr)) * 1.4426950408889634)
    tl.store(z_ptr + i, e / tl.load(total_ptr + 1), mask=i < N)


def softmax(x):
    (N,) = x.shape
    P = triton.cdiv(N, BLOCK_N)
    lanes = triton.next_power_of_2(P)
    part = torch.empty(2 * P, dtype=torch.float32, device=x.device)
    total = torch.empty(2, dtype=torch.float32, device=x.device)
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    softmax_partial_kernel[(P,)](x, part, N, x.stride(0), BLOCK_N=BLOCK_N, num_warps=16)
    softmax_maximum_kernel[(1,)](part, total, P, BLOCK_P=lanes)
    softmax_sum_kernel[(1,)](part, total, P, BLOCK_P=lanes)
    softmax_scale_kernel[(P,)](x, total, z, N, x.stride(0), BLOCK_N=BLOCK_N, num_warps=16)
    return z
