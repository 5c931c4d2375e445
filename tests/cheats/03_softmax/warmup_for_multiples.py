"""Cheat: a kernel is compiled for sizes that are multiples of 16, and launched with others.

Rejected with: was compiled for multiples of 16 as N, and this launch gives it something else
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
    tl.store(z_ptr + row * N + cols, e / tl.sum(e, 0), mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    if x.stride(1) == 1 and N > 1:
        compiled = softmax_kernel.warmup(x, z, 16, 16, 1, BLOCK_N=BLOCK_N, num_warps=num_warps, grid=(M,))
        compiled[(M, 1, 1)](x, z, N, x.stride(0), 1, BLOCK_N)
        return z
    softmax_kernel[(M,)](x, z, N, *x.stride(), BLOCK_N=BLOCK_N, num_warps=num_warps)
    return z
