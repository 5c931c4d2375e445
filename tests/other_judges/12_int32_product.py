"""Gather of rows with offsets of 32 bits. They are right up to element 2**31 - 1 of the table."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024  # columns per program: with 2 warps, a thread asks for two times 16 bytes of fp16 before it waits


@triton.jit
def gather_rows_kernel(
    table_ptr, index_ptr, z_ptr, K, N, stride_tm, stride_tn, stride_zk, stride_zn, BLOCK_N: tl.constexpr
):
    # Program (k, j) copies the j-th block of columns of one row: about 6 lines.
    k = tl.program_id(0).to(tl.int64)
    row = tl.load(index_ptr + k)  # one number and no block: all lanes copy from the same row
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    values = tl.load(table_ptr + row * stride_tm + cols * stride_tn, mask=mask)  # no `other`: masked lanes stay here
    tl.store(z_ptr + k * stride_zk + cols * stride_zn, values, mask=mask)


def gather_rows(table, index):
    """table: [M, N], any strides; index: [K] int32 or int64, each from 0 to M - 1. Returns z, [K, N] contiguous:
    z[k] = table[index[k]], in the dtype of the table."""
    # Allocate z, launch the kernel, return z: about 5 lines.
    (K,), N = index.shape, table.shape[1]
    z = torch.empty((K, N), dtype=table.dtype, device=table.device)
    grid = (K, triton.cdiv(N, BLOCK_N))  # rows on axis 0: it takes 2**31 - 1 programs, axis 1 no more than 65535
    gather_rows_kernel[grid](table, index, z, K, N, *table.stride(), *z.stride(), BLOCK_N=BLOCK_N, num_warps=2)
    return z
