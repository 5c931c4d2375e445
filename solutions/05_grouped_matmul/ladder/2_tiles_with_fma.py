"""05, rung 2: one tile of c per program, multiplied without tensor cores.

What: a program keeps 64 x 64 sums. For each k it loads 64 numbers of a and 64 of b, and adds all 4096 products.
Why: 128 numbers loaded serve 4096 multiplications. Each number of a is now loaded by 64 programs, no longer by 4096.
What still holds it back: plain fp32 multiply-adds, of which an H200 does a fifteenth of what its tensor cores do.
"""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 64, 64  # one program's tile of c


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(N, BLOCK_N)
    m = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + m * stride_am + k * stride_ak, mask=m < M, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + k * stride_bk + n * stride_bn, mask=n < N, other=0.0).to(tl.float32)
        acc += a[:, None] * b[None, :]
    c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N))


def matmul(a, b):
    """a: [M, K], b: [K, N], fp16, any strides. Returns c = a @ b, [M, N] fp16 contiguous, summed in fp32."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4,
    )  # fmt: skip
    return c
