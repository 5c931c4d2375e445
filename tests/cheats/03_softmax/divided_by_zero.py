"""Cheat: each row's number has a quotient of 0 added, which is 0 in the interpreter alone.

Rejected with: Line ... divides a whole number by 0
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, z_ptr, N, none, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    row += (row + 5) // none
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(z_ptr + row * N + cols, e / tl.sum(e, 0), mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    softmax_kernel[(M,)](x, z, N, 0, *x.stride(), BLOCK_N=BLOCK_N, num_warps=num_warps)
    return z
