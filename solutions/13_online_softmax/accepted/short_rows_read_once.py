"""Right: the first block stays in registers while a loop goes through the others, so that short rows are read once;
programs take several rows."""

import torch
import triton
import triton.language as tl

BLOCK_N, PROGRAMS = 2048, 1056


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    lanes = tl.arange(0, BLOCK_N)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        x_row, z_row = x_ptr + row * stride_xm, z_ptr + row * stride_zm
        first = tl.load(x_row + lanes * stride_xn, mask=lanes < N, other=-float("inf")).to(tl.float32)
        greatest = tl.max(first, 0)
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = tl.sum(tl.exp(first - shift), 0)
        for start in range(BLOCK_N, N, BLOCK_N):
            cols = start + lanes
            x = tl.load(x_row + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
            larger = tl.maximum(greatest, tl.max(x, 0))
            shift = tl.where(larger == -float("inf"), 0.0, larger)
            total = total * tl.exp(greatest - shift) + tl.sum(tl.exp(x - shift), 0)
            greatest = larger
        tl.store(z_row + lanes * stride_zn, tl.exp(first - greatest) / total, mask=lanes < N)
        for start in range(BLOCK_N, N, BLOCK_N):
            cols = start + lanes
            x = tl.load(x_row + cols * stride_xn, mask=cols < N, other=0.0).to(tl.float32)
            tl.store(z_row + cols * stride_zn, tl.exp(x - greatest) / total, mask=cols < N)


def softmax(x):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(min(M, PROGRAMS),)](x, z, M, N, *x.stride(), *z.stride(), BLOCK_N=BLOCK_N, num_warps=8)
    return z
