"""Wrong: rows are counted on axis 1, which has 65535 programs at most. Only sizes that a GPU gets through show it.

Rejected with: is too large: a GPU takes at most 2147483647 x 65535 x 65535 programs
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    row = tl.program_id(1)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N

    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf"))
    x = x.to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(z_ptr + row * stride_zm + cols * stride_zn, e / tl.sum(e, 0), mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    softmax_kernel[(1, M)](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return z
