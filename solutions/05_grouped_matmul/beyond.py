"""05 · Grouped matmul, a step beyond the lesson: nothing to write, something to read once you have passed.

Same tiles, same groups; three things are new. Tensor descriptors let the Tensor Memory Accelerator, which came with
Hopper (sm_90), fetch whole tiles, so that no thread counts addresses. A persistent grid starts one program per
multiprocessor, which begins to load its next tile while the last one is still being stored. The tile is stored in two
halves, which leaves room for the loads.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64  # one program's tile of c, and its step along K, in fp16
GROUP_M = 8  # rows of tiles in a group
PROGRAMS = 132  # one for each multiprocessor of an H200


@triton.jit
def tile_of(number, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """(row, column) of a tile in grouped order, as in the lesson."""
    tiles_per_group = GROUP_M * tiles_n
    first_m = number // tiles_per_group * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    return first_m + number % tiles_per_group % rows_in_group, number % tiles_per_group // rows_in_group


@triton.jit
def descriptor_matmul_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    # flatten makes one loop of two, so that loads run ahead across the end of a tile.
    for number in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        tile_m, tile_n = tile_of(number, tiles_m, tiles_n, GROUP_M)
        m, n = tile_m * BLOCK_M, tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a, b = a_desc.load([m, k]), b_desc.load([k, n])  # what lies outside is loaded as 0
            acc = tl.dot(a, b, acc, input_precision="tf32x3")
        # [BLOCK_M, BLOCK_N] as two halves of columns, each [BLOCK_M, BLOCK_N // 2].
        left, right = tl.split(tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1)))
        c_desc.store([m, n], left.to(c_desc.dtype))
        c_desc.store([m, n + BLOCK_N // 2], right.to(c_desc.dtype))  # what lies outside is not stored


@triton.jit
def pointer_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N))


def has_descriptor(x):
    """A descriptor wants rows without holes between columns, and 16 bytes (8 halves) as the unit of all addresses."""
    return x.stride(1) == 1 and x.stride(0) % 8 == 0 and x.data_ptr() % 16 == 0


def matmul(a, b):
    """a: [M, K], b: [K, N], fp16 or fp32, any strides. Returns c = a @ b, [M, N] contiguous, of their dtype."""
    (M, K), N = a.shape, b.shape[1]
    columns, step = (BLOCK_N // 4, BLOCK_K // 2) if a.dtype == torch.float32 else (BLOCK_N, BLOCK_K)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, columns)
    if all(has_descriptor(x) for x in (a, b, c)):
        descriptor_matmul_kernel[(min(tiles, PROGRAMS),)](
            TensorDescriptor.from_tensor(a, [BLOCK_M, step]),
            TensorDescriptor.from_tensor(b, [step, columns]),
            TensorDescriptor.from_tensor(c, [BLOCK_M, columns // 2]),
            M, N, K,
            BLOCK_M=BLOCK_M, BLOCK_N=columns, BLOCK_K=step, GROUP_M=GROUP_M, num_warps=8, num_stages=3,
        )  # fmt: skip
        return c
    pointer_matmul_kernel[(tiles,)](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=columns, BLOCK_K=step, GROUP_M=GROUP_M, num_warps=8, num_stages=3,
    )  # fmt: skip
    return c
