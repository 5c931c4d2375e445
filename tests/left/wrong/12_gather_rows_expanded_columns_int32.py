# Class 5 (strides 0 / two views of one storage)
# Breaks: a table whose columns are expanded (stride 0) x int32 index x row * stride past 2**31 (one column of a larger matrix, expanded)
# Wrong: where all columns of a row are one number its place is computed in int32, which wraps
"""12 · Gather rows: row k of z is the row of the table that index[k] names, as in an embedding."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024  # columns per program: with 2 warps, a thread asks for two times 16 bytes of fp16 before it waits


@triton.jit
def gather_rows_kernel(
    table_ptr, index_ptr, z_ptr, K, N, stride_tm, stride_tn, stride_zk, stride_zn, BLOCK_N: tl.constexpr
):
    # Program (k, j) copies the j-th block of columns of one row: about 6 lines.
    ### BEGIN SOLUTION
    # A row's number times its stride may pass 2**31, in the table and in z: one factor has to have 64 bits.
    k = tl.program_id(0).to(tl.int64)
    row32 = tl.load(index_ptr + k)
    row = row32.to(tl.int64)  # one number and no block: all lanes copy from the same row
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < N
    begin = row * stride_tm
    if stride_tn == 0:  # one number fills the row
        begin = (row32 * stride_tm).to(tl.int64)
    values = tl.load(table_ptr + begin + cols * stride_tn, mask=mask)  # no `other`: masked lanes stay here
    tl.store(z_ptr + k * stride_zk + cols * stride_zn, values, mask=mask)
    ### END SOLUTION


def gather_rows(table, index):
    """table: [M, N], any strides; index: [K] int32 or int64, each from 0 to M - 1. Returns z, [K, N] contiguous:
    z[k] = table[index[k]], in the dtype of the table."""
    # Allocate z, launch the kernel, return z: about 5 lines.
    ### BEGIN SOLUTION
    (K,), N = index.shape, table.shape[1]
    z = torch.empty((K, N), dtype=table.dtype, device=table.device)
    grid = (K, triton.cdiv(N, BLOCK_N))  # rows on axis 0: it takes 2**31 - 1 programs, axis 1 no more than 65535
    gather_rows_kernel[grid](table, index, z, K, N, *table.stride(), *z.stride(), BLOCK_N=BLOCK_N, num_warps=2)
    return z
    ### END SOLUTION
