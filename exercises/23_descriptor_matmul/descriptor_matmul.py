"""23 · Descriptor matmul: the Tensor Memory Accelerator moves whole tiles, and gets their corners and no addresses."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64  # one program's tile of c, and its step along K
GROUP_M = 8  # rows of tiles in a group


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    # A descriptor of each matrix, this program's tile as in 05, the sum along K, the store: about 16 lines.
    # YOUR CODE HERE
    pass


def stages_that_fit(device):
    """How many pairs of pieces of a and b are under way at a time: 4 where shared memory has room for them, else 3.

    sm_90 (H100) and sm_100 (B200) multiply from shared memory, so all pairs lie there. Others hold one in registers.
    """
    if device.type == "cpu":  # the interpreter
        return 3
    gpu = torch.cuda.get_device_properties(device)
    pairs = 4 if gpu.major in (9, 10) else 3
    return 4 if gpu.shared_memory_per_block_optin > pairs * (BLOCK_M + BLOCK_N) * BLOCK_K * 2 else 3


def matmul(a, b):
    """a: [M, K], b: [K, N], fp16, rows of 16-byte pieces. Returns c = a @ b, [M, N] fp16 contiguous, summed in fp32."""
    # Refuse what a descriptor cannot describe; c, the allocator, the grid, the launch: about 17 lines.
    # YOUR CODE HERE
    pass
