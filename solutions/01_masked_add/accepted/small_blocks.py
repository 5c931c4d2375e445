"""Right: 32 elements per program, offsets and mask written out in each access."""

import triton
import triton.language as tl

BLOCK_N = 32


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    start = tl.program_id(axis=0) * BLOCK_N
    lane = tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + start + lane, mask=lane < N - start, other=0.0)
    y = tl.load(y_ptr + start + lane, mask=lane < N - start, other=0.0)
    tl.store(z_ptr + (start + lane), value=y + x, mask=start + lane < N)


def masked_add(x, y):
    (N,) = x.shape
    z = x.new_empty(N)
    masked_add_kernel[((N + BLOCK_N - 1) // BLOCK_N,)](x, y, z, N, BLOCK_N)
    return z
