"""05, rung 1: one element of c per program.

What: a program goes along one row of a and one column of b, 128 terms at a time, and stores their sum.
Why it is slow: nothing is shared. Each number of a is loaded by 4096 programs, each number of b too, and two
neighbours of a column lie 8192 bytes apart: of every 32 bytes that are moved for b, 2 are used.
"""

import torch
import triton
import triton.language as tl

BLOCK_K = 128  # terms at a time


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, BLOCK_K: tl.constexpr
):
    m, n = tl.program_id(0) // N, tl.program_id(0) % N
    partial = tl.zeros((BLOCK_K,), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m * stride_am + k * stride_ak, mask=k < K, other=0.0)
        b = tl.load(b_ptr + k * stride_bk + n * stride_bn, mask=k < K, other=0.0)
        partial += a.to(tl.float32) * b
    tl.store(c_ptr + m * stride_cm + n * stride_cn, tl.sum(partial, 0))


def matmul(a, b):
    """a: [M, K], b: [K, N], fp16, any strides. Returns c = a @ b, [M, N] fp16 contiguous, summed in fp32."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[(M * N,)](
        a, b, c, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_K=BLOCK_K, num_warps=1,
    )  # fmt: skip
    return c
