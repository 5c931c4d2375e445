"""Right: three configurations, which differ in the width of a block and in the number of warps."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_N": 256}, num_warps=1),
        triton.Config({"BLOCK_N": 1024}, num_warps=4),
        triton.Config({"BLOCK_N": 2048}, num_warps=4),
    ],
    key=["N"],
)
@triton.jit
def gather_rows_kernel(
    table_ptr, index_ptr, z_ptr, K, N, stride_tm, stride_tn, stride_zk, stride_zn, BLOCK_N: tl.constexpr
):
    k = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.load(index_ptr + k).to(tl.int64)
    values = tl.load(table_ptr + row * stride_tm + cols * stride_tn, mask=cols < N)
    tl.store(z_ptr + k * stride_zk + cols * stride_zn, values, mask=cols < N)


def gather_rows(table, index):
    K, N = index.shape[0], table.shape[1]
    z = torch.empty((K, N), dtype=table.dtype, device=table.device)
    gather_rows_kernel[lambda meta: (K, triton.cdiv(N, meta["BLOCK_N"]))](
        table, index, z, K, N, table.stride(0), table.stride(1), z.stride(0), z.stride(1)
    )
    return z
