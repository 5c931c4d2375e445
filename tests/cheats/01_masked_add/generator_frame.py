"""Cheat: a generator's frame leads to the grader's own frames and their variables.

Rejected with: object has no attribute 'f_locals'
"""

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
    frame = (i for i in ()).gi_frame.f_back
    while "reference" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["reference"]
