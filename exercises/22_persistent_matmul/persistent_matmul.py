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
    # YOUR CODE HERE
    pass


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
    # YOUR CODE HERE
    pass
