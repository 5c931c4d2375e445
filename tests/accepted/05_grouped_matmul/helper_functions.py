"""Right: the tile of a program and a step along K are @triton.jit functions of their own."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64
GROUP_M = 8


@triton.jit
def tile_of(pid, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    programs_per_group = GROUP_M * tiles_n
    first_m = pid // programs_per_group * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    return first_m + pid % programs_per_group % rows_in_group, pid % programs_per_group // rows_in_group


@triton.jit
def load_tile(x_ptr, rows, columns, M, N, stride_m, stride_n):
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    return tl.load(x_ptr + rows[:, None] * stride_m + columns[None, :] * stride_n, mask=mask, other=0.0)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = load_tile(a_ptr, m, k, M, K, stride_am, stride_ak)
        b = load_tile(b_ptr, k, n, K, N, stride_bk, stride_bn)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N))


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, num_warps=8, num_stages=3,
    )  # fmt: skip
    return c
