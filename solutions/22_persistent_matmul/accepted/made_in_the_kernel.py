"""Right: each program makes its descriptors before its loop, in memory that an allocator provides."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64
GROUP_M = 8


@triton.jit
def place_of(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    tiles_per_group = GROUP_M * tiles_n
    first_m = tile // tiles_per_group * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    return first_m + (tile % tiles_per_group) % rows_in_group, (tile % tiles_per_group) // rows_in_group


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[stride_bk, 1], block_shape=[BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_cm, 1], block_shape=[BLOCK_M, BLOCK_N])
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, NUM_SMS, flatten=True):
        tile_m, tile_n = place_of(tile, tiles_m, tiles_n, GROUP_M)
        m, n = tile_m * BLOCK_M, tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
        c.store([m, n], acc.to(tl.float16))


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    for x in (a, b, c):
        if x.stride(1) != 1 or x.stride(0) % 8 or x.data_ptr() % 16:
            raise ValueError("a descriptor needs rows of neighbours, which begin at multiples of 16 bytes")
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=a.device))
    programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    matmul_kernel[(min(programs, tiles),)](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, NUM_SMS=programs,
        num_warps=8, num_stages=3,
    )  # fmt: skip
    return c
