"""Kept out by the gate: small tiles, which read a and b far more often than they compute with them."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32
GROUP_M = 8  # rows of tiles in a group


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    programs_per_group = GROUP_M * tl.cdiv(N, BLOCK_N)
    first_m = pid // programs_per_group * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    m = (first_m + pid % programs_per_group % rows_in_group) * BLOCK_M
    n = pid % programs_per_group // rows_in_group * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc.to(tl.float16))


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if any(x.stride(1) != 1 or x.stride(0) % 8 or x.data_ptr() % 16 for x in (a, b, c)):
        raise ValueError("rows of a, b and c have to begin at multiples of 16 bytes, and have no gaps")
    matmul_kernel[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K]),
        TensorDescriptor.from_tensor(b, [BLOCK_K, BLOCK_N]),
        TensorDescriptor.from_tensor(c, [BLOCK_M, BLOCK_N]),
        M, N, K,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, num_warps=4, num_stages=3,
    )  # fmt: skip
    return c
