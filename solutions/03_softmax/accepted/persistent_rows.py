"""Right: at most 8 programs; each goes through every 8th row."""

import torch
import triton
import triton.language as tl

PROGRAMS = 8


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    cols = tl.arange(0, BLOCK_N)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, 0))
        tl.store(z_ptr + row * stride_zm + cols * stride_zn, e / tl.sum(e, 0), mask=cols < N)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(min(M, PROGRAMS),)](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_N=triton.next_power_of_2(N)
    )
    return z
