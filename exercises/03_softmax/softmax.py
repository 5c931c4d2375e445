"""03 · Row softmax: one row per program, read once and written once."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, BLOCK_N: tl.constexpr):
    # Program i turns row i into probabilities; BLOCK_N >= N: about 7 lines.
    # YOUR CODE HERE
    pass


def softmax(x):
    """x: [M, N] fp32, fp16 or bf16, any strides, N <= 16384. Returns z, [M, N] contiguous: softmax over each row."""
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)  # tl.arange wants a power of two
    # 8 lanes per thread, 16 warps at most. H200, Triton 3.6, 32768 x 4096 fp32: 0.98 of a copy's speed (4 warps: 0.96).
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    softmax_kernel[(M,)](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return z
