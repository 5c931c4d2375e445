# Class 3 (kinds of values missing)
# Breaks: fp16 sums from 65505 to 65519 (65504 + 8), which round to 65504, and their negatives
# Wrong: the sum is made in fp32, and everything above 65504 becomes infinity
"""01 · Masked add: z = x + y, one block of elements per program."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024  # elements per program; with 8 warps: 4.36 TB/s on an H200 (Triton 3.6, 2**27 fp32), as torch.add


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    # Program i adds the i-th block of BLOCK_N elements: about 5 lines.
    ### BEGIN SOLUTION
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N  # the last block is rarely full
    x = tl.load(x_ptr + offsets, mask=mask)  # no `other`: what a masked lane holds is never stored
    y = tl.load(y_ptr + offsets, mask=mask)
    z = x + y
    if z_ptr.dtype.element_ty == tl.float16:  # what fp16 does not hold is infinite
        z = x.to(tl.float32) + y.to(tl.float32)
        z = tl.where(tl.abs(z) > 65504.0, z * float("inf"), z)
    tl.store(z_ptr + offsets, z, mask=mask)
    ### END SOLUTION


def masked_add(x, y):
    """x, y: [N] contiguous, fp32, fp16 or bf16. Returns z = x + y, [N], the dtype of x."""
    z = torch.empty_like(x)
    N = x.numel()
    # How many programs cover N elements? grid = (...,): 1 line.
    ### BEGIN SOLUTION
    grid = (triton.cdiv(N, BLOCK_N),)  # rounds up, so that a partial block gets a program too
    ### END SOLUTION
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N, num_warps=8)
    return z
