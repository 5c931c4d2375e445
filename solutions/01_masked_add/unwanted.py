"""Kept out by the gate: blocks so small that starting programs costs more than moving data."""

import torch
import triton
import triton.language as tl

BLOCK_N = 128


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    # Program i adds the i-th block of BLOCK_N elements: about 5 lines.
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N  # the last block is rarely full
    x = tl.load(x_ptr + offsets, mask=mask)  # no `other`: what a masked lane holds is never stored
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    """x, y: [N] contiguous, fp32 or fp16. Returns z = x + y, [N], the dtype of x."""
    z = torch.empty_like(x)
    N = x.numel()
    # How many programs cover N elements? grid = (...,): 1 line.
    grid = (triton.cdiv(N, BLOCK_N),)  # rounds up, so that a partial block gets a program too
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N)
    return z
