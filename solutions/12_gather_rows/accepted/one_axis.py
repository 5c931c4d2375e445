"""Right: a grid with one axis; the row and its block of columns come from a division of the program's number."""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024


@triton.jit
def gather_rows_kernel(table_ptr, index_ptr, z_ptr, N, blocks, stride_tm, stride_tn, BLOCK_N: tl.constexpr):
    program = tl.program_id(0)
    k = (program // blocks).to(tl.int64)
    cols = program % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    source = table_ptr + tl.load(index_ptr + k).to(tl.int64) * stride_tm + cols * stride_tn
    tl.store(z_ptr + k * N + cols, tl.load(source, mask=cols < N), mask=cols < N)


def gather_rows(table, index):
    z = torch.empty((*index.shape, table.shape[1]), dtype=table.dtype, device=table.device)
    K, N = z.shape
    blocks = triton.cdiv(N, BLOCK_N)
    gather_rows_kernel[(K * blocks,)](
        table, index, z, N, blocks, table.stride(0), table.stride(1), BLOCK_N=BLOCK_N, num_warps=4
    )
    return z
