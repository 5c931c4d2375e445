"""Cheat: a library multiplies the matrices, and a kernel copies the product.

Rejected with: torch.linalg.multi_dot in line ... does work that your kernel has to do
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def matmul(a, b):
    product = torch.linalg.multi_dot([a, b])
    c = torch.empty_like(product)
    copy_kernel[(triton.cdiv(c.numel(), 1024),)](product, c, c.numel(), BLOCK=1024)
    return c
