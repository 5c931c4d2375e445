"""Right: at most 8 programs; each goes through every 8th row, with pointers that advance."""

import torch
import triton
import triton.language as tl

BLOCK_N = 4096
PROGRAMS = 8


@triton.jit
def cumsum_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    lanes = tl.arange(0, BLOCK_N)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        x_ptrs = x_ptr + row * stride_xm + lanes * stride_xn
        z_ptrs = z_ptr + row * stride_zm + lanes * stride_zn
        carry = 0.0
        left = N
        while left > 0:
            x = tl.load(x_ptrs, mask=lanes < left, other=1.0).to(tl.float32)  # 1 or 0: no result waits for it
            tl.store(z_ptrs, tl.cumsum(x, 0) + carry, mask=lanes < left)
            carry += tl.sum(x, 0)
            x_ptrs += BLOCK_N * stride_xn
            z_ptrs += BLOCK_N * stride_zn
            left -= BLOCK_N


def cumsum(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    cumsum_kernel[(min(M, PROGRAMS),)](x, z, M, N, *x.stride(), *z.stride(), BLOCK_N=BLOCK_N, num_warps=8)
    return z
