# Class 1 (sizes stop below the promise)
# Breaks: N >= 2**20 where the number of whole blocks is no multiple of 4 (promised: N <= 2**30)
# Wrong: long rows are walked 4 blocks at a time; the rest begins at the last partial block, so up to three whole blocks are lost
"""07 · Row sum: one program adds up a row of any length, block after block."""

import torch
import triton
import triton.language as tl

BLOCK_N = 2048  # columns in a block: 8 for each of 256 threads, two loads of 16 bytes in fp32, one in fp16


@triton.jit
def row_sum_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    # Program i adds up row i, however many blocks it takes: about 7 lines.
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK_N)
    # One partial sum per lane: no lane waits for another before the row is done. fp16 would stop counting at 2048.
    partial = tl.zeros((BLOCK_N,), dtype=tl.float32)
    rest = 0  # where the walk of single blocks begins
    if N >= 1048576:  # long rows: four loads under way at a time
        for start in range(0, N // (4 * BLOCK_N)):
            x_ptrs = x_ptr + row * stride_xm + (start * (4 * BLOCK_N) + lanes) * stride_xn
            partial += tl.load(x_ptrs)
            partial += tl.load(x_ptrs + BLOCK_N * stride_xn)
            partial += tl.load(x_ptrs + 2 * BLOCK_N * stride_xn)
            partial += tl.load(x_ptrs + 3 * BLOCK_N * stride_xn)
        rest = N // BLOCK_N * BLOCK_N
    for start in range(rest, N, BLOCK_N):
        cols = start + lanes
        # Past the end of the row a lane adds 0.
        partial += tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=0.0)
    tl.store(z_ptr + row, tl.sum(partial, 0))  # the store rounds to z's dtype, once
    ### END SOLUTION


def row_sum(x):
    """x: [M, N] fp32, fp16 or bf16, any strides, N >= 1. Returns z, [M]: the sum of each row, added up in fp32."""
    M, N = x.shape
    z = torch.empty(M, dtype=x.dtype, device=x.device)
    # How many programs, if each adds up one row? grid = (...,): 1 line.
    ### BEGIN SOLUTION
    grid = (M,)
    ### END SOLUTION
    # 8 warps are the 256 threads that BLOCK_N is made for.
    row_sum_kernel[grid](x, z, M, N, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N, num_warps=8)
    return z
