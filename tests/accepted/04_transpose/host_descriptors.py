"""Right: host tensor descriptors for x and z where sizes allow, pointers elsewhere."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N = 64, 64


@triton.jit
def descriptor_transpose_kernel(x_desc, z_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    z_desc.store([n, m], x_desc.load([m, n]).T)


@triton.jit
def transpose_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zn, stride_zm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    tile = tl.load(x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn, mask=(m[:, None] < M) & (n[None, :] < N))
    z_ptrs = z_ptr + n[:, None] * stride_zn + m[None, :] * stride_zm
    tl.store(z_ptrs, tl.trans(tile), mask=(n[:, None] < N) & (m[None, :] < M))


def describable(tensor):
    row = tensor.stride(0) * tensor.element_size()
    return tensor.stride(1) == 1 and row > 0 and row % 16 == 0 and tensor.data_ptr() % 16 == 0


def transpose(x):
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    if describable(x) and describable(z):
        x_desc = TensorDescriptor(x, shape=[M, N], strides=[x.stride(0), 1], block_shape=[BLOCK_M, BLOCK_N])
        z_desc = TensorDescriptor(z, shape=[N, M], strides=[M, 1], block_shape=[BLOCK_N, BLOCK_M])
        descriptor_transpose_kernel[grid](x_desc, z_desc, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    else:
        transpose_kernel[grid](
            x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
        )
    return z
