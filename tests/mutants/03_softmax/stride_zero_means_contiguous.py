"""Wrong: a row stride of 0 is taken for one that nobody has set. Only a drawn call shows it.

Rejected with: of x
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, 0)
    e = tl.exp(x - largest)
    tl.store(z_ptr + row * stride_zm + cols * stride_zn, e / tl.sum(e, 0), mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    softmax_kernel[(M,)](x, z, M, N, x.stride(0) or N, x.stride(1), N, 1, BLOCK_N=BLOCK_N)
    return z
