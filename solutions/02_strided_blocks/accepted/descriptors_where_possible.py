"""Right: host tensor descriptors where strides and alignment allow, pointers elsewhere."""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N = 16, 32


@triton.jit
def descriptor_copy_kernel(x_desc, z_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(1) * BLOCK_M
    col = tl.program_id(0) * BLOCK_N
    z_desc.store([row, col], x_desc.load([row, col]))


@triton.jit
def strided_copy_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (cols < N)
    tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tile, mask=mask)


def describable(tensor):
    stride_m, stride_n = tensor.stride()
    item = tensor.element_size()
    return stride_n == 1 and stride_m > 0 and stride_m * item % 16 == 0 and tensor.data_ptr() % 16 == 0


def strided_copy(x, z):
    M, N = x.shape
    grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))
    if describable(x) and describable(z):
        x_desc = TensorDescriptor.from_tensor(x, [BLOCK_M, BLOCK_N])
        z_desc = TensorDescriptor.from_tensor(z, [BLOCK_M, BLOCK_N])
        descriptor_copy_kernel[grid](x_desc, z_desc, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    else:
        strided_copy_kernel[grid](
            x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
        )
    return z
