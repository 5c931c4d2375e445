"""Right: a second @triton.jit function makes offsets and mask, and the addition is done in fp32."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def block(number, N, BLOCK_N: tl.constexpr):
    offsets = number * BLOCK_N + tl.arange(0, BLOCK_N)
    return offsets, offsets < N


@triton.jit
def add(x, y):
    return x.to(tl.float32) + y.to(tl.float32)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets, mask = block(tl.program_id(0), N, BLOCK_N)
    z = add(tl.load(x_ptr + offsets, mask=mask), tl.load(y_ptr + offsets, mask=mask))
    tl.store(z_ptr + offsets, z.to(z_ptr.dtype.element_ty), mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), BLOCK_N),)
    masked_add_kernel[grid](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
