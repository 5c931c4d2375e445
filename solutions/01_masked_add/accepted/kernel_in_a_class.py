"""Right: kernel and helper stand in a class, next to functions of the same names that are not used."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def added(x, y):
    return x - y


class Addition:
    @staticmethod
    @triton.jit
    def added(x, y):
        return x + y

    @triton.jit
    def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = offsets < N
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(z_ptr + offsets, summed(x, y), mask=mask)


summed = Addition.added


def masked_add(x, y):
    z = torch.empty_like(x)
    Addition.masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
