"""22 · Persistent matmul: as many programs as the GPU has multiprocessors, and each goes on to its next tile."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64  # one tile of c, and a step along K
GROUP_M = 8  # rows of tiles in a group


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    # Walk over this program's tiles; of each do what 05 does for its only one: about 25 lines.
    ### BEGIN SOLUTION
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles_per_group = GROUP_M * tiles_n
    # Its number, and then every NUM_SMS-th: at any time the programs work on neighbouring tiles.
    for tile in range(tl.program_id(0), tiles_m * tiles_n, NUM_SMS):
        first_m = tile // tiles_per_group * GROUP_M
        rows_in_group = min(tiles_m - first_m, GROUP_M)
        tile_m = first_m + tile % tiles_per_group % rows_in_group
        tile_n = tile % tiles_per_group // rows_in_group

        m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        k = tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
        b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)  # a tile's own: it starts at 0 in each round
        for start in range(0, K, BLOCK_K):
            a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)
            b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += BLOCK_K * stride_ak
            b_ptrs += BLOCK_K * stride_bk
        c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
        tl.store(c_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N))
    ### END SOLUTION


def num_sms(device):
    """How many multiprocessors the GPU has, as its driver says: 132 for an H200."""
    if device.type == "cpu":  # the interpreter
        return 4
    return torch.cuda.get_device_properties(device).multi_processor_count


def tile_that_fits(device):
    """(columns of a tile, stages): 256 and 4 on sm_90 (H100) and sm_100 (B200), which multiply from shared memory.

    Others hold a pair of pieces in registers beside the sums: their tiles are half as wide, and 3 pairs are shared.
    """
    if device.type == "cpu":  # the interpreter
        return BLOCK_N, 2
    gpu = torch.cuda.get_device_properties(device)
    if gpu.major in (9, 10) and gpu.shared_memory_per_block_optin >= 4 * (BLOCK_M + BLOCK_N) * BLOCK_K * 2:
        return BLOCK_N, 4
    columns = min(BLOCK_N, 128)
    return columns, 4 if gpu.shared_memory_per_block_optin >= 3 * (BLOCK_M + columns) * BLOCK_K * 2 else 3


def matmul(a, b):
    """a: [M, K], b: [K, N], fp16, any strides. Returns c = a @ b, [M, N] fp16 contiguous, summed in fp32."""
    # Allocate c, choose the grid, launch: about 9 lines.
    ### BEGIN SOLUTION
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    programs, (columns, stages) = num_sms(a.device), tile_that_fits(a.device)
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, columns)
    matmul_kernel[(min(programs, tiles),)](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=columns, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, NUM_SMS=programs,
        num_warps=8, num_stages=stages,
    )  # fmt: skip
    return c
    ### END SOLUTION
