"""Cheat: the kernel stands in another file.

Rejected with: cannot be imported: No module named 'kernels'
"""

import torch
import triton
from kernels import masked_add_kernel

BLOCK_N = 1024


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
