"""Wrong: the first launch is one program that goes along all of x, as in 13; all others of the GPU stand idle.

Finding: traffic

Rejected with: One program reads 1 of x; 0.25 is enough.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 8192


@triton.jit
def softmax_reduce_kernel(x_ptr, total_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    largest = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + i * stride_x, mask=i < N, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 0))
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), 0)
        largest = new
    tl.store(total_ptr, largest)
    tl.store(total_ptr + 1, total)


@triton.jit
def softmax_scale_kernel(x_ptr, total_ptr, z_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + i * stride_x, mask=i < N, other=0.0).to(tl.float32)
    tl.store(z_ptr + i, tl.exp(x - tl.load(total_ptr)) / tl.load(total_ptr + 1), mask=i < N)


def softmax(x):
    (N,) = x.shape
    total = torch.empty(2, dtype=torch.float32, device=x.device)
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    softmax_reduce_kernel[(1,)](x, total, N, x.stride(0), BLOCK_N=BLOCK_N, num_warps=8)
    softmax_scale_kernel[(triton.cdiv(N, BLOCK_N),)](x, total, z, N, x.stride(0), BLOCK_N=BLOCK_N, num_warps=8)
    return z
