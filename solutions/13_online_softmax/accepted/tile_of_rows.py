"""Right: a program goes along several rows in a 2-D tile, a maximum and a sum for each."""

import torch
import triton
import triton.language as tl

ROWS, BLOCK_N = 2, 1024


@triton.jit
def softmax_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, ROWS: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    greatest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N))[None, :]
        mask = (rows < M) & (cols < N)
        x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(greatest, tl.max(x, 1))
        shift = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(greatest - shift) + tl.sum(tl.exp(x - shift[:, None]), 1)
        greatest = larger
    for start in range(0, N, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N))[None, :]
        mask = (rows < M) & (cols < N)
        x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask).to(tl.float32)
        tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tl.exp(x - greatest[:, None]) / total[:, None], mask=mask)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(triton.cdiv(M, ROWS),)](
        x, z, M, N, *x.stride(), *z.stride(), ROWS=ROWS, BLOCK_N=BLOCK_N, num_warps=8
    )
    return z
