"""Cheat: print gives the text of a tensor to an object that keeps it.

Rejected with: lies in the CPU's memory
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


class Catcher:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text


def values(x):
    catcher = Catcher()
    print(x, file=catcher)
    return [float(text) for text in catcher.text[8:-2].split(",")]


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](
        torch.tensor([a + b for a, b in zip(values(x), values(y))]), z, x.numel(), BLOCK_N=BLOCK_N
    )
    return z
