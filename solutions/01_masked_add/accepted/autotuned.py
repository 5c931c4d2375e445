"""Right: the block size comes from two autotune configurations, the grid from the chosen one."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK_N": 256}, num_warps=2), triton.Config({"BLOCK_N": 1024}, num_warps=4)],
    key=["N"],
)
@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    if N:
        masked_add_kernel[lambda meta: (triton.cdiv(N, meta["BLOCK_N"]),)](x, y, z, N)
    return z
