# Class 1 (sizes stop below the promise)
# Breaks: N > 65535 * 1024 = 67 107 840 (promised: N < 2**31)
# Wrong: the grid is folded at 65535 programs and unfolded at 65536: block 65535 of 1024 elements is never written
"""01 · Masked add: z = x + y, one block of elements per program."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024  # elements per program; with 8 warps: 4.36 TB/s on an H200 (Triton 3.6, 2**27 fp32), as torch.add


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    # Program i adds the i-th block of BLOCK_N elements: about 5 lines.
    ### BEGIN SOLUTION
    pid = tl.program_id(1) * 65536 + tl.program_id(0)  # axis 1 only where axis 0 is full
    offsets = pid * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N  # the last block is rarely full
    x = tl.load(x_ptr + offsets, mask=mask)  # no `other`: what a masked lane holds is never stored
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)
    ### END SOLUTION


def masked_add(x, y):
    """x, y: [N] contiguous, fp32, fp16 or bf16. Returns z = x + y, [N], the dtype of x."""
    z = torch.empty_like(x)
    N = x.numel()
    # How many programs cover N elements? grid = (...,): 1 line.
    ### BEGIN SOLUTION
    blocks = triton.cdiv(N, BLOCK_N)
    grid = (min(blocks, 65535), max(triton.cdiv(blocks, 65535), 1))  # rounds up, so that a partial block gets a program too
    ### END SOLUTION
    masked_add_kernel[grid](x, y, z, N, BLOCK_N=BLOCK_N, num_warps=8)
    return z
