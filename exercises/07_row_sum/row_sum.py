"""07 · Row sum: one program adds up a row of any length, block after block."""

import torch
import triton
import triton.language as tl

BLOCK_N = 2048  # columns in a block: 8 for each of 256 threads, two loads of 16 bytes in fp32, one in fp16


@triton.jit
def row_sum_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    # Program i adds up row i, however many blocks it takes: about 7 lines.
    # YOUR CODE HERE
    pass


def row_sum(x):
    """x: [M, N] fp32, fp16 or bf16, any strides, N >= 1. Returns z, [M]: the sum of each row, added up in fp32."""
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    # How many programs, if each adds up one row? grid = (...,): 1 line.
    # YOUR CODE HERE
    pass
    # 8 warps are the 256 threads that BLOCK_N is made for.
    row_sum_kernel[grid](x, z, M, N, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N, num_warps=8)
    return z
