"""Right: options of the launch are numbers where Triton has truth values, and a truth value where it has a number."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


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
    grid = (triton.cdiv(N, BLOCK_N),)
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N, num_warps=8, num_stages=True, debug=0, enable_fp_fusion=1)
    return z
