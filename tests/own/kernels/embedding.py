import torch
import triton
import triton.language as tl


@triton.jit
def embedding_kernel(ids_ptr, table_ptr, out_ptr, n, dim, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask_n = offs_n < n
    mask_d = offs_d < dim
    ids = tl.load(ids_ptr + offs_n, mask=mask_n, other=0)
    mask = mask_n[:, None] & mask_d[None, :]
    rows = tl.load(table_ptr + ids[:, None] * dim + offs_d[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + offs_n[:, None] * dim + offs_d[None, :], rows, mask=mask)


def embedding(ids, table):
    n, dim = ids.numel(), table.shape[1]
    out = torch.empty((n, dim), dtype=table.dtype, device=table.device)
    embedding_kernel[(triton.cdiv(n, 16), triton.cdiv(dim, 64))](ids, table, out, n, dim, BLOCK_N=16, BLOCK_D=64)
    return out
