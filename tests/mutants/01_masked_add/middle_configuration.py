"""Wrong: the second of three autotuned configurations has a mask one short.

Rejected with: The end of z is not covered
"""

import torch
import triton
import triton.language as tl


@triton.autotune(
    [
        triton.Config({"BLOCK_N": 256, "LESS": 0}),
        triton.Config({"BLOCK_N": 512, "LESS": 1}),
        triton.Config({"BLOCK_N": 1024, "LESS": 0}),
    ],
    key=["N"],
)
@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr, LESS: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N - LESS
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    masked_add_kernel[lambda meta: (triton.cdiv(N, meta["BLOCK_N"]),)](x, y, z, N)
    return z
