"""Cheat: tl.cat joins the halves of a row in an order that it does not promise.

Rejected with: Line ... depends on the order of tl.cat
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, z_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, cols, half = tl.program_id(0), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_N // 2)
    x_row, later = x_ptr + row * stride_xm, half + BLOCK_N // 2
    low = tl.load(x_row + half * stride_xn, mask=half < N, other=-float("inf"))
    high = tl.load(x_row + later * stride_xn, mask=later < N, other=-float("inf"))
    x = tl.cat(low, high, can_reorder=True).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(z_ptr + row * N + cols, e / tl.sum(e, 0), mask=cols < N)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = max(triton.next_power_of_2(N), 2)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    softmax_kernel[(M,)](x, z, N, *x.stride(), BLOCK_N=BLOCK_N, num_warps=num_warps)
    return z
