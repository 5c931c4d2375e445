"""Cheat: torch.nn.functional does the softmax, and a kernel copies it.

Rejected with: torch.nn.functional.softmax in line ... does work that your kernel has to do
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def softmax(x):
    z = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](F.softmax(x, dim=-1), z, x.numel(), BLOCK=1024)
    return z
