"""Cheat: Triton calls a chain of C functions, in which torch adds and no line of the file runs.

Rejected with: torch.add in line ... does work that your kernel has to do
"""

import functools
import itertools

import torch
import triton
import triton.language as tl

BLOCK_N = 1024

PAIR = []
SUM = functools.partial(next, itertools.starmap(torch.add, PAIR))


@triton.heuristics({"s_ptr": SUM})
@triton.jit
def sum_kernel(x_ptr, z_ptr, N, s_ptr, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(z_ptr + offsets, tl.load(s_ptr + offsets, mask=offsets < N), mask=offsets < N)


def masked_add(x, y):
    z = torch.empty_like(x)
    PAIR.append((x, y))
    sum_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
