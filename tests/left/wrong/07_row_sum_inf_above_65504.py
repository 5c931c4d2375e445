# Class 3 (kinds of values missing)
# Breaks: fp16, a sum from 65505 to 65519 (or its negative), which rounds to 65504
# Wrong: everything above 65504 becomes infinity, but rounding makes 65504 of what is below 65520
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
    for start in range(0, N, BLOCK_N):
        cols = start + lanes
        # Past the end of the row a lane adds 0.
        partial += tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=0.0)
    total = tl.sum(partial, 0)
    if z_ptr.dtype.element_ty == tl.float16:  # what fp16 does not hold is infinite
        total = tl.where(total > 65504.0, float("inf"), total)
        total = tl.where(total < -65504.0, -float("inf"), total)
    tl.store(z_ptr + row, total)  # the store rounds to z's dtype, once
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
