"""Right: a program copies a tile of 16 rows: it loads 16 indices at once, and each stands for a row of the tile."""

import triton
import triton.language as tl

BLOCK_K, BLOCK_N = 16, 256


@triton.jit
def gather_rows_kernel(
    table_ptr, index_ptr, z_ptr, K, N, stride_tm, stride_tn, stride_zk, stride_zn, BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    ks = tl.program_id(0).to(tl.int64) * BLOCK_K + tl.arange(0, BLOCK_K)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    rows = tl.load(index_ptr + ks, mask=ks < K, other=0).to(tl.int64)[:, None]
    mask = (ks < K)[:, None] & (cols < N)
    values = tl.load(table_ptr + rows * stride_tm + cols * stride_tn, mask=mask)
    tl.store(z_ptr + ks[:, None] * stride_zk + cols * stride_zn, values, mask=mask)


def gather_rows(table, index):
    K, N = len(index), table.size(1)
    z = table.new_empty((K, N))
    grid = (triton.cdiv(K, BLOCK_K), triton.cdiv(N, BLOCK_N))
    gather_rows_kernel[grid](
        table, index, z, K, N, table.stride(0), table.stride(1), z.stride(0), z.stride(1), BLOCK_K=BLOCK_K,
        BLOCK_N=BLOCK_N,
    )  # fmt: skip
    return z
