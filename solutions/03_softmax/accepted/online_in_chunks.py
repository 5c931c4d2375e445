"""Right: a loop over chunks of a row keeps maximum and sum; the row is read again only if it has several chunks."""

import torch
import triton
import triton.language as tl

CHUNK = 1024


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, CHUNK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, CHUNK)
    x_row = x_ptr + row * stride_xm
    greatest = -float("inf")
    total = 0.0
    # from the last chunk to the first, which is still there when the second loop begins
    chunks = tl.cdiv(N, CHUNK)
    x = tl.full((CHUNK,), -float("inf"), tl.float32)
    for i in range(0, chunks):
        n = (chunks - 1 - i) * CHUNK + cols
        x = tl.load(x_row + n * stride_xn, mask=n < N, other=-float("inf")).to(tl.float32)
        before = greatest
        greatest = tl.maximum(greatest, tl.max(x, 0))
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = total * tl.exp(before - shift) + tl.sum(tl.exp(x - shift), 0)
    z_row = z_ptr + row * stride_zm
    tl.store(z_row + cols * stride_zn, tl.exp(x - greatest) / total, mask=cols < N)
    for start in range(CHUNK, N, CHUNK):
        n = start + cols
        x = tl.load(x_row + n * stride_xn, mask=n < N, other=-float("inf")).to(tl.float32)
        tl.store(z_row + n * stride_zn, tl.exp(x - greatest) / total, mask=n < N)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(M,)](x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), CHUNK=CHUNK)
    return z
