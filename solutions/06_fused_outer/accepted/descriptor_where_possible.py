"""Right: a tensor descriptor made in the kernel stores the tile where rows of z begin at multiples of 16 bytes."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 128


@triton.jit
def outer_relu_kernel(
    x_ptr,
    y_ptr,
    z_ptr,
    M,
    N,
    stride_x,
    stride_y,
    stride_zm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DESCRIPTOR: tl.constexpr,
):
    top, left = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    rows, cols = top + tl.arange(0, BLOCK_M), left + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + rows * stride_x, mask=rows < M)
    y = tl.load(y_ptr + cols * stride_y, mask=cols < N)
    v = x[:, None] * y[None, :]
    v = tl.where(v < 0, 0.0, v)
    if DESCRIPTOR:
        z = tl.make_tensor_descriptor(z_ptr, shape=[M, N], strides=[stride_zm, 1], block_shape=[BLOCK_M, BLOCK_N])
        z.store([top, left], v)
    else:
        z_ptrs = z_ptr + rows[:, None] * stride_zm + cols[None, :]
        tl.store(z_ptrs, v, mask=(rows[:, None] < M) & (cols[None, :] < N))


def outer_relu(x, y):
    M, N = x.numel(), y.numel()
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)

    def scratch(size, alignment, stream):
        return torch.empty(size, dtype=torch.int8, device=x.device)

    triton.set_allocator(scratch)
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    aligned = M > 0 and N > 0 and N * z.element_size() % 16 == 0
    outer_relu_kernel[grid](
        x, y, z, M, N, x.stride(0), y.stride(0), z.stride(0), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, DESCRIPTOR=aligned
    )
    return z
