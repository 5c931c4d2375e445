"""Wrong: a guard gives rows of -inf alone the probability 0. Only a drawn call shows it.

Rejected with: A row that holds nothing but -inf is 0 in z
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N

    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf"))
    x = x.to(tl.float32)
    largest = tl.max(x, 0)
    e = tl.exp(x - tl.where(largest == -float("inf"), 0.0, largest))
    total = tl.sum(e, 0)
    tl.store(z_ptr + row * stride_zm + cols * stride_zn, e / tl.where(total == 0, 1.0, total), mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    softmax_kernel[(M,)](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return z
