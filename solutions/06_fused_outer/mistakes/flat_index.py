"""Wrong: a line of 1024 elements of z per program, whose row and column are found by // and %: y is read for each row.

Finding: traffic

Rejected with: y is read
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def outer_relu_kernel(x_ptr, y_ptr, z_ptr, M, N, stride_x, stride_y, BLOCK: tl.constexpr):
    flat = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = flat < M * N
    x = tl.load(x_ptr + flat // N * stride_x, mask=inside)
    y = tl.load(y_ptr + flat % N * stride_y, mask=inside)
    v = x * y
    tl.store(z_ptr + flat, tl.where(v < 0, 0.0, v), mask=inside)


def outer_relu(x, y):
    M, N = x.numel(), y.numel()
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    outer_relu_kernel[(triton.cdiv(M * N, BLOCK),)](x, y, z, M, N, x.stride(0), y.stride(0), BLOCK=BLOCK)
    return z
