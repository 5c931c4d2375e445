"""Wrong: a running maximum of -inf is subtracted from -inf.

Finding: inf-minus-inf

Says: z is NaN where a row begins with a block of -inf alone: the maximum so far is -inf then, and (-inf) - (-inf) is
NaN. Subtract something finite there.
"""

import torch
import triton
import triton.language as tl

CHUNK = 64


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, CHUNK: tl.constexpr):
    row = tl.program_id(0)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, N, CHUNK):
        n = start + tl.arange(0, CHUNK)
        x = tl.load(x_ptr + row * stride_xm + n * stride_xn, mask=n < N, other=-float("inf")).to(tl.float32)
        before = greatest
        greatest = tl.maximum(greatest, tl.max(x, 0))
        total = total * tl.exp(before - greatest) + tl.sum(tl.exp(x - greatest), 0)
        tl.store(z_ptr + row * stride_zm + n * stride_zn, 0.0, mask=n < 0)
        tl.store(z_ptr + row * N + n, x, mask=n < 0)
    for start in range(0, N, CHUNK):
        n = start + tl.arange(0, CHUNK)
        x = tl.load(x_ptr + row * stride_xm + n * stride_xn, mask=n < N, other=-float("inf")).to(tl.float32)
        tl.store(z_ptr + row * stride_zm + n * stride_zn, tl.exp(x - greatest) / total, mask=n < N)


@triton.jit
def copy_kernel(x_ptr, e_ptr, M, N, sm, sn, B: tl.constexpr):
    row = tl.program_id(0)
    n = tl.arange(0, B)
    tl.store(e_ptr + row * N + n, tl.load(x_ptr + row * sm + n * sn, mask=n < N), mask=n < N)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    e = torch.empty((M, N), dtype=x.dtype, device=x.device)
    copy_kernel[(M,)](x, e, M, N, x.stride(0), x.stride(1), B=triton.next_power_of_2(N))
    softmax_kernel[(M,)](e, z, M, N, N, 1, z.stride(0), z.stride(1), CHUNK=CHUNK)
    return z
