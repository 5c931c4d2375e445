"""13 · Online softmax: a row of any length in two passes, with a maximum and a sum that are right so far."""

import torch
import triton
import triton.language as tl

BLOCK_N = 4096  # columns in a block: with 8 warps a thread holds 16, four loads of 16 bytes in fp32


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    # Program i goes along row i twice: for the maximum and the sum, then for the results: about 16 lines.
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    x_row, z_row = x_ptr + row * stride_xm, z_ptr + row * stride_zm
    lanes = tl.arange(0, BLOCK_N)
    greatest = -float("inf")  # of the columns so far; any finite number would be more than some row has
    total = 0.0  # of exp(x - greatest) over the columns so far
    for start in range(0, N, BLOCK_N):  # the first pass
        cols = start + lanes
        x = tl.load(x_row + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
        before = greatest
        greatest = tl.maximum(before, tl.max(x, 0))
        # While all columns so far are -inf, greatest is too, and -inf - -inf would be NaN.
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = total * tl.exp(before - shift) + tl.sum(tl.exp(x - shift), 0)
    for start in range(0, N, BLOCK_N):  # the second pass
        cols = start + lanes
        x = tl.load(x_row + cols * stride_xn, mask=cols < N).to(tl.float32)  # no `other`: lanes no longer meet
        tl.store(z_row + cols * stride_zn, tl.exp(x - greatest) / total, mask=cols < N)
    ### END SOLUTION


def softmax(x):
    """x: [M, N] fp32, fp16 or bf16, any strides, N <= 262144. Returns z, [M, N] contiguous: softmax over each row."""
    # Allocate z, launch the kernel with a program per row, choose the number of warps, return z: about 4 lines.
    ### BEGIN SOLUTION
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)  # empty_like would keep the strides of a view
    softmax_kernel[(M,)](x, z, M, N, *x.stride(), *z.stride(), BLOCK_N=BLOCK_N, num_warps=8)
    return z
    ### END SOLUTION
