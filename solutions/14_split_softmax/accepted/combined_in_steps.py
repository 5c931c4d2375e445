"""Right: four launches; the partial results are joined in two of them, block after block with a running maximum."""

import torch
import triton
import triton.language as tl

BLOCK_N = 2048
BLOCK_P = 16


@triton.jit
def softmax_partial_kernel(x_ptr, max_ptr, sum_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, 0)
    tl.store(max_ptr + p, largest)
    tl.store(sum_ptr + p, tl.sum(tl.where(x == -float("inf"), 0.0, tl.exp(x - largest)), 0))


@triton.jit
def softmax_join_kernel(max_ptr, sum_ptr, to_max_ptr, to_sum_ptr, P, PROGRAMS: tl.constexpr, BLOCK_P: tl.constexpr):
    q = tl.program_id(0)
    largest = -float("inf")
    total = 0.0
    for start in range(q * BLOCK_P, P, PROGRAMS * BLOCK_P):
        parts = start + tl.arange(0, BLOCK_P)
        maxima = tl.load(max_ptr + parts, mask=parts < P, other=-float("inf"))
        sums = tl.load(sum_ptr + parts, mask=parts < P, other=0.0)
        new = tl.maximum(largest, tl.max(maxima, 0))
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - shift) + tl.sum(sums * tl.exp(maxima - shift), 0)
        largest = new
    tl.store(to_max_ptr + q, largest)
    tl.store(to_sum_ptr + q, total)


@triton.jit
def softmax_scale_kernel(x_ptr, max_ptr, sum_ptr, z_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=0.0).to(tl.float32)
    tl.store(z_ptr + i, tl.exp(x - tl.load(max_ptr)) / tl.load(sum_ptr), mask=i < N)


def softmax(x):
    (N,) = x.shape
    P = triton.cdiv(N, BLOCK_N)
    Q = min(triton.cdiv(P, BLOCK_P), 8)
    sizes = (P, Q, 1)
    maxima = [torch.empty(size, dtype=torch.float32, device=x.device) for size in sizes]
    sums = [torch.empty(size, dtype=torch.float32, device=x.device) for size in sizes]
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    softmax_partial_kernel[(P,)](x, maxima[0], sums[0], N, x.stride(0), BLOCK_N=BLOCK_N)
    softmax_join_kernel[(Q,)](maxima[0], sums[0], maxima[1], sums[1], P, PROGRAMS=Q, BLOCK_P=BLOCK_P)
    softmax_join_kernel[(1,)](maxima[1], sums[1], maxima[2], sums[2], Q, PROGRAMS=1, BLOCK_P=BLOCK_P)
    softmax_scale_kernel[(P,)](x, maxima[2], sums[2], z, N, x.stride(0), BLOCK_N=BLOCK_N)
    return z
