"""22 · Persistent matmul: as many programs as the GPU has multiprocessors, and each goes on to its next tile."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64  # one tile of c, and a step along K
GROUP_M = 8  # rows of tiles in a group


@triton.jit
def matmul_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    # Loop over this program's tiles; do for each what 23 does for its only tile: about 15 lines.
    ### BEGIN SOLUTION
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles_per_group = GROUP_M * tiles_n
    # Its number, and then every NUM_SMS-th: at any time the programs work on neighbouring tiles.
    # flatten: this loop and the inner one become one, whose loads run ahead into the next tile.
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, NUM_SMS, flatten=True):
        first_m = tile // tiles_per_group * GROUP_M
        rows_in_group = min(tiles_m - first_m, GROUP_M)
        m = (first_m + tile % tiles_per_group % rows_in_group) * BLOCK_M  # the corner of the tile, in elements
        n = tile % tiles_per_group // rows_in_group * BLOCK_N

        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)  # a tile's own: it starts at 0 in each round
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
        c_desc.store([m, n], acc.to(tl.float16))
    ### END SOLUTION


def refuse_rows_that_are_not_aligned(**matrices):
    """Raises ValueError unless a descriptor can describe each matrix: the TMA counts addresses in 16-byte pieces."""
    for name, x in matrices.items():
        if x.stride(1) != 1:
            raise ValueError(f"{name}: neighbours in a row lie {x.stride(1)} elements apart, 1 was expected")
        if x.stride(0) * x.element_size() % 16 or x.data_ptr() % 16:
            raise ValueError(f"{name}: rows have to begin at multiples of 16 bytes, and they are {x.stride(0)} apart")


def num_sms(device):
    """How many multiprocessors the GPU has, as its driver says: 132 for an H200."""
    if device.type == "cpu":  # the interpreter
        return 4
    return torch.cuda.get_device_properties(device).multi_processor_count


def columns_that_fit(device):
    """Columns of a tile: 256 on sm_90 (H100) and sm_100 (B200), which multiply from shared memory.

    Others hold the pieces that they multiply in registers, beside the sums: their tiles are half as wide.
    """
    if device.type == "cpu":  # the interpreter
        return BLOCK_N
    return BLOCK_N if torch.cuda.get_device_properties(device).major in (9, 10) else min(BLOCK_N, 128)


def matmul(a, b):
    """a: [M, K], b: [K, N], fp16, rows of 16-byte pieces. Returns c = a @ b, [M, N] fp16 contiguous, summed in fp32."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    refuse_rows_that_are_not_aligned(a=a, b=b, c=c)
    columns, programs = columns_that_fit(a.device), num_sms(a.device)
    a_desc = TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K])
    b_desc = TensorDescriptor.from_tensor(b, [BLOCK_K, columns])
    c_desc = TensorDescriptor.from_tensor(c, [BLOCK_M, columns])
    # The grid, the launch, the return: about 7 lines.
    ### BEGIN SOLUTION
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, columns)
    matmul_kernel[(min(programs, tiles),)](
        a_desc, b_desc, c_desc, M, N, K,
        BLOCK_M=BLOCK_M, BLOCK_N=columns, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, NUM_SMS=programs,
        num_warps=8, num_stages=3,
    )  # fmt: skip
    return c
    ### END SOLUTION
