"""Right: a while loop that steps by tl.num_programs."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64
GROUP_M = 8


@triton.jit
def matmul_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles_per_group = GROUP_M * tiles_n
    tile = tl.program_id(0)
    while tile < tiles_m * tiles_n:
        first_m = tile // tiles_per_group * GROUP_M
        rows_in_group = min(tiles_m - first_m, GROUP_M)
        m = (first_m + tile % tiles_per_group % rows_in_group) * BLOCK_M
        n = tile % tiles_per_group // rows_in_group * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
        c_desc.store([m, n], acc.to(tl.float16))
        tile += tl.num_programs(0)


def described(x, block):
    if x.stride(1) != 1 or x.stride(0) % 8 or x.data_ptr() % 16:
        raise ValueError("a descriptor needs rows of neighbours, which begin at multiples of 16 bytes")
    return TensorDescriptor.from_tensor(x, block)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    grid = lambda meta: (min(programs, triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"])),)  # noqa: E731
    matmul_kernel[grid](
        described(a, [BLOCK_M, BLOCK_K]), described(b, [BLOCK_K, BLOCK_N]), described(c, [BLOCK_M, BLOCK_N]), M, N, K,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M,
        num_warps=8, num_stages=3,
    )  # fmt: skip
    return c
