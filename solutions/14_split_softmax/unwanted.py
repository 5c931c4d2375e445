"""Kept out by the gate: 131072 small blocks, whose partial results one program joins one block after the other."""

import torch
import triton
import triton.language as tl

BLOCK_N = 512


@triton.jit
def softmax_partial_kernel(x_ptr, max_ptr, sum_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=-float("inf"))
    largest = tl.max(x, 0)
    tl.store(max_ptr + p, largest)
    tl.store(sum_ptr + p, tl.sum(tl.exp(x - largest), 0))


@triton.jit
def softmax_combine_kernel(max_ptr, sum_ptr, total_ptr, P, BLOCK_N: tl.constexpr):
    largest = -float("inf")
    total = 0.0
    for start in range(0, P, BLOCK_N):
        parts = start + tl.arange(0, BLOCK_N)
        maxima = tl.load(max_ptr + parts, mask=parts < P, other=-float("inf"))
        sums = tl.load(sum_ptr + parts, mask=parts < P, other=0.0)
        new = tl.maximum(largest, tl.max(maxima, 0))
        total = total * tl.exp(largest - new) + tl.sum(sums * tl.exp(maxima - new), 0)
        largest = new
    tl.store(total_ptr, largest)
    tl.store(total_ptr + 1, total)


@triton.jit
def softmax_scale_kernel(x_ptr, total_ptr, z_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    largest = tl.load(total_ptr)
    total = tl.load(total_ptr + 1)
    x = tl.load(x_ptr + i * stride_x, mask=i < N)
    tl.store(z_ptr + i, tl.exp(x - largest) / total, mask=i < N)


def softmax(x):
    (N,) = x.shape
    P = triton.cdiv(N, BLOCK_N)
    maxima = torch.empty(P, dtype=torch.float32, device=x.device)
    sums = torch.empty(P, dtype=torch.float32, device=x.device)
    total = torch.empty(2, dtype=torch.float32, device=x.device)
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    softmax_partial_kernel[(P,)](x, maxima, sums, N, x.stride(0), BLOCK_N=BLOCK_N)
    softmax_combine_kernel[(1,)](maxima, sums, total, P, BLOCK_N=BLOCK_N)
    softmax_scale_kernel[(P,)](x, total, z, N, x.stride(0), BLOCK_N=BLOCK_N)
    return z
