"""Right: a tensor descriptor made in the kernel loads x where its strides allow, pointers elsewhere."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 32, 32


@triton.jit
def transpose_kernel(
    x_ptr,
    z_ptr,
    M,
    N,
    stride_xm,
    stride_xn,
    stride_zn,
    stride_zm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DESCRIPTOR: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    if DESCRIPTOR:
        x = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[stride_xm, 1], block_shape=[BLOCK_M, BLOCK_N])
        tile = x.load([tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N])
    else:
        x_ptrs = x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn
        tile = tl.load(x_ptrs, mask=(m[:, None] < M) & (n[None, :] < N))
    z_ptrs = z_ptr + n[:, None] * stride_zn + m[None, :] * stride_zm
    tl.store(z_ptrs, tl.trans(tile), mask=(n[:, None] < N) & (m[None, :] < M))


def transpose(x):
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)

    def scratch(size, alignment, stream):
        return torch.empty(size, dtype=torch.int8, device=x.device)

    triton.set_allocator(scratch)
    aligned = x.stride(1) == 1 and x.stride(0) * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    transpose_kernel[grid](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M, BLOCK_N, DESCRIPTOR=aligned
    )
    return z
