"""Cheat: a kernel that copies takes the place of the right one for as many rows as are only compiled or timed.

Rejected with: z is wrong in
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    mask = cols < N
    tl.store(z_ptr + row * N + cols, tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask), mask=mask)


@triton.jit
def softmax_kernel(x_ptr, z_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(z_ptr + row * N + cols, e / tl.sum(e, 0), mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    kernel = copy_kernel if M == 4096 else softmax_kernel
    kernel[(M,)](x, z, N, *x.stride(), BLOCK_N=BLOCK_N, num_warps=min(max(BLOCK_N // 256, 1), 16))
    return z
