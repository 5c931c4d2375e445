"""A right product of matrices whose tile has 96 rows in two parts, 64 and 32: the compiler makes wrong code of it.

The parts have the tile of b in common. The lower one is multiplied by mma.sync, as all products with fewer than 64 rows
are, the upper one by wgmma, which runs on by itself.
"""

import torch
import triton
import triton.language as tl

LOW = 32
BLOCK_N = 256
BLOCK_K = 64
WARPS = 4
STAGES = 3


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    LOW: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * (64 + LOW)
    top, low = first + tl.arange(0, 64), first + 64 + tl.arange(0, LOW)
    cols, ks = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    above, below = tl.zeros((64, BLOCK_N), tl.float32), tl.zeros((LOW, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + ks
        inside = (k[:, None] < K) & (cols[None, :] < N)
        b = tl.load(b_ptr + k[:, None] * stride_bk + cols[None, :] * stride_bn, mask=inside, other=0.0)
        inside = (low[:, None] < M) & (k[None, :] < K)
        a_low = tl.load(a_ptr + low[:, None] * stride_am + k[None, :] * stride_ak, mask=inside, other=0.0)
        below = tl.dot(a_low, b, below)
        inside = (top[:, None] < M) & (k[None, :] < K)
        a_top = tl.load(a_ptr + top[:, None] * stride_am + k[None, :] * stride_ak, mask=inside, other=0.0)
        above = tl.dot(a_top, b, above)
    to = c_ptr + cols[None, :] * stride_cn
    tl.store(to + top[:, None] * stride_cm, above.to(tl.float16), mask=(top[:, None] < M) & (cols[None, :] < N))
    tl.store(to + low[:, None] * stride_cm, below.to(tl.float16), mask=(low[:, None] < M) & (cols[None, :] < N))


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    matmul_kernel[(triton.cdiv(M, 64 + LOW), triton.cdiv(N, BLOCK_N))](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), LOW, BLOCK_N, BLOCK_K,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return c
