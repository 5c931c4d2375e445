"""Cheat: two names of one constant are one object for Python, and two where the text is made.

Rejected with: Line 26: LEFT is RIGHT is not allowed in a kernel. Write LEFT == RIGHT: `is` asks for one object
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


def thousand():
    return tl.constexpr(1e3)


LEFT = RIGHT = thousand()


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + (-1.0 if LEFT is RIGHT else 1.0) * y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
