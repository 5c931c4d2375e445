"""Wrong: the kernel makes its descriptors, and no allocator is set: nobody provides the memory that they lie in.

Finding: host

Rejected with: launches a kernel that makes descriptors, and they need memory on the GPU that nobody has provided: call
triton.set_allocator
"""

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
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[stride_bk, 1], block_shape=[BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_cm, 1], block_shape=[BLOCK_M, BLOCK_N])

    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    programs_per_group = GROUP_M * tl.cdiv(N, BLOCK_N)
    first_m = pid // programs_per_group * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    m = (first_m + pid % programs_per_group % rows_in_group) * BLOCK_M  # the corner of the tile, in elements
    n = pid % programs_per_group // rows_in_group * BLOCK_N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)  # what lies outside of a or b is loaded as 0
    c.store([m, n], acc.to(tl.float16))  # what lies outside of c is not stored


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
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    for name, x in (("a", a), ("b", b), ("c", c)):
        if x.stride(1) != 1:
            raise ValueError(f"{name}: neighbours in a row lie {x.stride(1)} elements apart, 1 was expected")
        if x.stride(0) * x.element_size() % 16 or x.data_ptr() % 16:
            raise ValueError(f"{name}: rows have to begin at multiples of 16 bytes, and they are {x.stride(0)} apart")

    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M,
        num_warps=8, num_stages=stages_that_fit(a.device),
    )  # fmt: skip
    return c
