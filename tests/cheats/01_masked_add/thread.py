"""Cheat: torch adds in another thread, which nobody watches.

Rejected with: starts a thread, which torch does not watch
"""

import threading

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def masked_add(x, y):
    total = []
    worker = threading.Thread(target=lambda: total.append(x + y))
    worker.start()
    worker.join()
    z = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](total[0], z, x.numel(), BLOCK_N=BLOCK_N)
    return z
