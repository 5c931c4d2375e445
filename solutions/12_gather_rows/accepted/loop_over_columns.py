"""Right: one program per row, which loops over the row in blocks, as the embedding of several libraries does."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def gather_rows_kernel(
    table_ptr, index_ptr, z_ptr, K, N, stride_tm, stride_tn, stride_zk, stride_zn, BLOCK_N: tl.constexpr
):
    k = tl.program_id(0).to(tl.int64)
    source = table_ptr + tl.load(index_ptr + k).to(tl.int64) * stride_tm
    target = z_ptr + k * stride_zk
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        values = tl.load(source + cols * stride_tn, mask=cols < N)
        tl.store(target + cols * stride_zn, values, mask=cols < N)


def gather_rows(table, index):
    K, N = index.shape[0], table.shape[1]
    z = torch.empty((K, N), dtype=table.dtype, device=table.device)
    gather_rows_kernel[(K,)](
        table, index, z, K, N, table.stride(0), table.stride(1), z.stride(0), z.stride(1), BLOCK_N=BLOCK_N
    )
    return z
