"""Right: one kernel stores the exponentials and their sum in scratch memory, a second one divides."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_exp_kernel(x_ptr, e_ptr, sum_ptr, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(e_ptr + row * N + cols, e, mask=cols < N)
    tl.store(sum_ptr + row, tl.sum(e, 0))


@triton.jit
def softmax_divide_kernel(e_ptr, sum_ptr, z_ptr, N, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    e = tl.load(e_ptr + i, mask=i < count, other=0.0)
    total = tl.load(sum_ptr + i // N, mask=i < count, other=1.0)
    tl.store(z_ptr + i, e / total, mask=i < count)


def softmax(x):
    M, N = x.shape
    e = torch.empty((M, N), dtype=torch.float32, device=x.device)
    sums = torch.empty(M, dtype=torch.float32, device=x.device)
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_exp_kernel[(M,)](x, e, sums, N, x.stride(0), x.stride(1), BLOCK_N=triton.next_power_of_2(N))
    softmax_divide_kernel[(triton.cdiv(M * N, 512),)](e, sums, z, N, M * N, BLOCK=512)
    return z
