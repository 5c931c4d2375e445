"""14 · Split softmax: one long vector, shared by many programs; three launches, because no launch has a barrier."""

import torch
import triton
import triton.language as tl

BLOCK_N = 8192  # elements of x that one program owns: 32 for each of 256 threads


@triton.jit
def softmax_partial_kernel(x_ptr, max_ptr, sum_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    # Program p leaves the maximum of block p and its sum of exponentials in scratch: about 8 lines.
    # YOUR CODE HERE
    pass


@triton.jit
def softmax_combine_kernel(max_ptr, sum_ptr, total_ptr, P, BLOCK_P: tl.constexpr):
    # The only program joins P maxima and sums: total_ptr gets the maximum of x, then its sum. About 7 lines.
    # YOUR CODE HERE
    pass


@triton.jit
def softmax_scale_kernel(x_ptr, total_ptr, z_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    # Program p reads block p once more and stores its probabilities: about 6 lines.
    # YOUR CODE HERE
    pass


def softmax(x):
    """x: [N] fp32, fp16 or bf16, any stride, 1 <= N <= 2**27. Returns z, [N] contiguous: the softmax of all of x."""
    # Make room for z and for the scratch, then launch the three kernels, one after the other: about 10 lines.
    # YOUR CODE HERE
    pass
