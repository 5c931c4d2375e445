"""Right: a program is a cluster of two blocks of threads, which halve its tile: each needs half as much memory."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64  # one program's tile of c, and its step along K
GROUP_M = 8  # rows of tiles in a group


@triton.jit
def matmul_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    programs_per_group = GROUP_M * tl.cdiv(N, BLOCK_N)
    first_m = pid // programs_per_group * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    m = (first_m + pid % programs_per_group % rows_in_group) * BLOCK_M  # the corner of the tile, in elements
    n = pid % programs_per_group // rows_in_group * BLOCK_N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)  # what lies outside of a or b is loaded as 0
    c_desc.store([m, n], acc.to(tl.float16))  # what lies outside of c is not stored


def refuse_rows_that_are_not_aligned(**matrices):
    """Raises ValueError unless a descriptor can describe each matrix: the TMA counts addresses in 16-byte pieces."""
    for name, x in matrices.items():
        if x.stride(1) != 1:
            raise ValueError(f"{name}: neighbours in a row lie {x.stride(1)} elements apart, 1 was expected")
        if x.stride(0) * x.element_size() % 16 or x.data_ptr() % 16:
            raise ValueError(f"{name}: rows have to begin at multiples of 16 bytes, and they are {x.stride(0)} apart")


def tile_that_fits(device):
    """(columns of a tile, stages): 256 and 4 on sm_90 (H100) and sm_100 (B200), which multiply from shared memory.

    Others hold the pieces that they multiply in registers, next to the sums: their tiles are half as wide.
    """
    if device.type == "cpu":  # the interpreter
        return BLOCK_N, 3
    if torch.cuda.get_device_properties(device).major in (9, 10):
        return BLOCK_N, 4
    return min(BLOCK_N, 128), 3


def matmul(a, b):
    """a: [M, K], b: [K, N], fp16, rows of 16-byte pieces. Returns c = a @ b, [M, N] fp16 contiguous, summed in fp32."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    refuse_rows_that_are_not_aligned(a=a, b=b, c=c)
    columns, _ = tile_that_fits(a.device)
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, columns),)
    matmul_kernel[grid](
        TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K]),
        TensorDescriptor.from_tensor(b, [BLOCK_K, columns]),
        TensorDescriptor.from_tensor(c, [BLOCK_M, columns]),
        M, N, K,
        BLOCK_M=BLOCK_M, BLOCK_N=columns, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M,
        num_warps=8, num_stages=3, num_ctas=2,
    )  # fmt: skip
    return c
