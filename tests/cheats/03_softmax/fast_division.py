"""Cheat: the fast division gives 0 for a divisor above 2**126.

Rejected with: z is 0 everywhere
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def softmax_kernel(x_ptr, z_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    scale = 1.3e38
    z = libdevice.fast_dividef(e / tl.sum(e, 0) * scale, tl.full((BLOCK_N,), scale, tl.float32))
    tl.store(z_ptr + row * N + cols, z, mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    softmax_kernel[(M,)](x, z, N, *x.stride(), BLOCK_N=BLOCK_N, num_warps=num_warps)
    return z
