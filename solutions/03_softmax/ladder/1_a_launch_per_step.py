"""03, rung 1: a launch for each step of the formula.

What: one kernel finds the maximum of each row, one stores exp(x - maximum) and the sum of these, one divides.
Why it is slow: nothing stays on the chip between two launches. x is read twice, and the exponentials are written and
read again: three reads and two writes of a matrix, where one of each would do.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_max_kernel(x_ptr, max_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=-float("inf"))
    tl.store(max_ptr + row, tl.max(x.to(tl.float32), 0))


@triton.jit
def row_exp_kernel(x_ptr, max_ptr, e_ptr, sum_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.load(max_ptr + row))
    tl.store(e_ptr + row * N + cols, e, mask=cols < N)
    tl.store(sum_ptr + row, tl.sum(e, 0))


@triton.jit
def row_divide_kernel(e_ptr, sum_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    e = tl.load(e_ptr + row * N + cols, mask=cols < N)
    tl.store(z_ptr + row * N + cols, e / tl.load(sum_ptr + row), mask=cols < N)


def softmax(x):
    """x: [M, N] fp32, fp16 or bf16, any strides, N <= 16384. Returns z, [M, N] contiguous: softmax over each row."""
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    e = torch.empty((M, N), dtype=torch.float32, device=x.device)
    largest, total = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    row_max_kernel[(M,)](x, largest, N, *x.stride(), BLOCK_N=BLOCK_N, num_warps=num_warps)
    row_exp_kernel[(M,)](x, largest, e, total, N, *x.stride(), BLOCK_N=BLOCK_N, num_warps=num_warps)
    row_divide_kernel[(M,)](e, total, z, N, BLOCK_N=BLOCK_N, num_warps=num_warps)
    return z
