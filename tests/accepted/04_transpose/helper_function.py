"""Right: one @triton.jit helper loads a tile, another stores it; 64-bit offsets; other argument order."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 64, 32


@triton.jit
def pointers(ptr, rows, columns, stride_row, stride_column):
    return ptr + rows.to(tl.int64)[:, None] * stride_row + columns.to(tl.int64)[None, :] * stride_column


@triton.jit
def inside(rows, columns, row_count, column_count):
    return (rows[:, None] < row_count) & (columns[None, :] < column_count)


@triton.jit
def transpose_kernel(
    z_ptr, x_ptr, stride_zn, stride_zm, stride_xm, stride_xn, M, N, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    tile = tl.load(pointers(x_ptr, m, n, stride_xm, stride_xn), mask=inside(m, n, M, N))
    tl.store(pointers(z_ptr, n, m, stride_zn, stride_zm), tl.trans(tile), mask=inside(n, m, N, M))


def transpose(x):
    M, N = x.shape
    z = torch.zeros((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N), 1)
    transpose_kernel[grid](
        z, x, z.stride(0), z.stride(1), x.stride(0), x.stride(1), M, N, BLOCK_N=BLOCK_N, BLOCK_M=BLOCK_M
    )
    return z
