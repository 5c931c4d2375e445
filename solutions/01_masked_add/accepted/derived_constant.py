"""Right: a second block size is derived from the first when the file is imported."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024
HALF = BLOCK_N // 2


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    # Program i adds the i-th block of BLOCK_N elements: about 5 lines.
    ### BEGIN SOLUTION
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N  # the last block is rarely full
    x = tl.load(x_ptr + offsets, mask=mask)  # no `other`: what a masked lane holds is never stored
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)
    ### END SOLUTION


def masked_add(x, y):
    """x, y: [N] contiguous, fp32 or fp16. Returns z = x + y, [N], the dtype of x."""
    z = torch.empty_like(x)
    N = x.numel()
    # How many programs cover N elements? grid = (...,): 1 line.
    ### BEGIN SOLUTION
    grid = (triton.cdiv(N, BLOCK_N),)  # rounds up, so that a partial block gets a program too
    ### END SOLUTION
    grid = (triton.cdiv(N, 2 * HALF),)
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
