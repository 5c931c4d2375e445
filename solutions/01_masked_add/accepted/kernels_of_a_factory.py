"""Right: a function makes kernels, each with constants of its own."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


def made(block, sign):
    BLOCK = tl.constexpr(block)
    SIGN = tl.constexpr(sign)

    @triton.jit
    def part(y):
        return SIGN * y

    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, N):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < N
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(z_ptr + offsets, x + part(y), mask=mask)

    return kernel


subtracted = made(256, -1.0)
few, many = made(512, 1.0), made(1024, 1.0)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    block, kernel = (512, few) if N < 2000 else (1024, many)
    kernel[(triton.cdiv(N, block),)](x, y, z, N)
    return z
