# Class 1 (sizes stop below the promise)
# Breaks: more than 1024 blocks (N > 8 388 608 at BLOCK_N = 8192) of which the first 1024 are -inf and a later one is not
# Wrong: the combine kernel walks over 1024 pairs at a time and rescales without a stand-in: (-inf) - (-inf) makes the sum NaN
"""14 · Split softmax: one long vector, shared by many programs; three launches, because no launch has a barrier."""

import torch
import triton
import triton.language as tl

BLOCK_N = 8192  # elements of x that one program owns: 32 for each of 256 threads


@triton.jit
def softmax_partial_kernel(x_ptr, max_ptr, sum_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    # Program p leaves the maximum of block p and its sum of exponentials in scratch: about 8 lines.
    ### BEGIN SOLUTION
    p = tl.program_id(0)
    offsets = p * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + offsets * stride_x, mask=offsets < N, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, 0)
    # A block of -inf alone: (-inf) - (-inf) would be NaN, and exp(-inf - 0) is the 0 that it has to be.
    shift = tl.where(largest == -float("inf"), 0.0, largest)
    tl.store(max_ptr + p, largest)
    tl.store(sum_ptr + p, tl.sum(tl.exp(x - shift), 0))
    ### END SOLUTION


@triton.jit
def softmax_combine_kernel(max_ptr, sum_ptr, total_ptr, P, BLOCK_P: tl.constexpr):
    # The only program joins P maxima and sums: total_ptr gets the maximum of x, then its sum. About 7 lines.
    ### BEGIN SOLUTION
    # What is neutral: a maximum that never wins, and a sum that adds nothing.
    parts = tl.arange(0, BLOCK_P)
    maxima = tl.load(max_ptr + parts, mask=parts < P, other=-float("inf"))
    sums = tl.load(sum_ptr + parts, mask=parts < P, other=0.0)
    largest = tl.max(maxima, 0)
    total = tl.sum(sums * tl.exp(maxima - largest), 0)  # each sum at the common maximum
    for start in range(BLOCK_P, P, BLOCK_P):  # more than fit into a block
        parts = start + tl.arange(0, BLOCK_P)
        maxima = tl.load(max_ptr + parts, mask=parts < P, other=-float("inf"))
        sums = tl.load(sum_ptr + parts, mask=parts < P, other=0.0)
        before = largest
        largest = tl.maximum(before, tl.max(maxima, 0))
        total = total * tl.exp(before - largest) + tl.sum(sums * tl.exp(maxima - largest), 0)
    tl.store(total_ptr, largest)
    tl.store(total_ptr + 1, total)
    ### END SOLUTION


@triton.jit
def softmax_scale_kernel(x_ptr, total_ptr, z_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    # Program p reads block p once more and stores its probabilities: about 6 lines.
    ### BEGIN SOLUTION
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    largest = tl.load(total_ptr)
    total = tl.load(total_ptr + 1)
    x = tl.load(x_ptr + offsets * stride_x, mask=mask, other=-float("inf")).to(tl.float32)
    tl.store(z_ptr + offsets, tl.exp(x - largest) / total, mask=mask)
    ### END SOLUTION


def softmax(x):
    """x: [N] fp32, fp16 or bf16, any stride, 1 <= N <= 2**27. Returns z, [N] contiguous: the softmax of all of x."""
    # Make room for z and for the scratch, then launch the three kernels, one after the other: about 10 lines.
    ### BEGIN SOLUTION
    (N,) = x.shape
    P = triton.cdiv(N, BLOCK_N)
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    maxima = torch.empty(P, dtype=torch.float32, device=x.device)  # a sum in x's dtype would lose digits
    sums = torch.empty(P, dtype=torch.float32, device=x.device)
    total = torch.empty(2, dtype=torch.float32, device=x.device)
    # Each launch ends before the next one begins: that is the only moment at which all programs have written.
    softmax_partial_kernel[(P,)](x, maxima, sums, N, x.stride(0), BLOCK_N=BLOCK_N, num_warps=8)
    softmax_combine_kernel[(1,)](maxima, sums, total, P, BLOCK_P=min(triton.next_power_of_2(P), 1024), num_warps=4)
    softmax_scale_kernel[(P,)](x, total, z, N, x.stride(0), BLOCK_N=BLOCK_N, num_warps=8)
    return z
    ### END SOLUTION
