"""19, rung 1: the epilogue as a launch of its own.

What: the kernel of 05 stores the sums, in tiles of 64 x 64; a second kernel reads them, adds the bias, applies leaky
relu and stores c.
Why so: one step after the other, as torch does it. The sums stay fp32 between the launches, so that c is rounded once.
What still holds it back: for M = N = 4096 the sums are 67 MB, written and read again for a bias of 8 kB.
"""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = 64, 64, 32, 8
COLUMNS = 1024  # of one row of c, for each program of the second launch


@triton.jit
def product_kernel(
    a_ptr, b_ptr, sums_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid, tiles_m, tiles_n = tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + pid % (GROUP_M * tiles_n) % rows_in_group
    pid_n = pid % (GROUP_M * tiles_n) // rows_in_group
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    tl.store(sums_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def bias_and_activation_kernel(sums_ptr, bias_ptr, c_ptr, N, COLUMNS: tl.constexpr):
    row, n = tl.program_id(0), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.load(sums_ptr + row * N + n, mask=n < N)
    sums += tl.load(bias_ptr + n, mask=n < N).to(tl.float32)
    tl.store(c_ptr + row * N + n, tl.where(sums > 0, sums, 0.01 * sums), mask=n < N)


def linear_leaky_relu(a, b, bias):
    """a: [M, K], b: [K, N], any strides, bias: [N], fp16. Returns c, [M, N] fp16 contiguous: leaky relu of the sums."""
    (M, K), N = a.shape, b.shape[1]
    sums = torch.empty((M, N), dtype=torch.float32, device=a.device)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    product_kernel[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        a, b, sums, M, N, K, *a.stride(), *b.stride(),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, num_warps=4, num_stages=4,
    )  # fmt: skip
    bias_and_activation_kernel[(M, triton.cdiv(N, COLUMNS))](sums, bias, c, N, COLUMNS=COLUMNS)
    return c
