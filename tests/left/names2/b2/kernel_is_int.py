import torch
import triton
import triton.language as tl

BLOCK_N = 1024

A = tl.constexpr(100000)
@triton.jit
def same(B: tl.constexpr):
    S: tl.constexpr = -1.0 if A is B else 1.0
    return S


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    pass
    tl.store(z_ptr + offsets, x + same(A) * y, mask=mask)



def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
