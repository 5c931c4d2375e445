"""Wrong: the seventeenth of twenty autotuned configurations adds one to each sum.

Rejected with: This is configuration 17 of 20
"""

import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK_N": 1 << 6 + n % 5, "MORE": n == 16}, num_warps=1 << n // 5) for n in range(20)]


@triton.autotune(CONFIGS, key=["N"])
@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr, MORE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y + 1 if MORE else x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    masked_add_kernel[lambda meta: (triton.cdiv(N, meta["BLOCK_N"]),)](x, y, z, N)
    return z
