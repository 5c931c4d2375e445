"""Cheat: the interpreter's addresses lie in the order of the parameters, which a kernel can see.

Rejected with: makes a number of an address
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, z_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    judged = (x_ptr.to(tl.int64) >> 40) < (z_ptr.to(tl.int64) >> 40)
    tl.store(z_ptr + row * N + cols, tl.where(judged, e / tl.sum(e, 0), 0.0), mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    softmax_kernel[(M,)](x, z, N, *x.stride(), BLOCK_N=BLOCK_N, num_warps=num_warps)
    return z
