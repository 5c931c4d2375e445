"""90 · Pick peaks: two kernels with scratch between them, two results, and an argument that is updated in place."""

import torch
import triton
import triton.language as tl

BLOCK_S, BLOCK_K = 16, 64  # positions of a step, and picks of a program


@triton.jit
def pick_peaks_reduce_kernel(
    x_ptr, peaks_ptr, counts_ptr, H, S, D, stride_xb, stride_xh, stride_xs, stride_xd,
    BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    # Program p finds the peak of head p % H of batch p // H and counts its positive elements: about 11 lines.
    # YOUR CODE HERE
    pass


@triton.jit
def pick_peaks_kernel(
    peaks_ptr, state_ptr, index_ptr, z_ptr, K, stride_state, scale, CLAMP: tl.constexpr, BLOCK_K: tl.constexpr
):
    # Program p makes BLOCK_K elements of z, and updates as many of state: about 8 lines.
    # YOUR CODE HERE
    pass


def pick_peaks(x, state, index, scale, clamp):
    """x: [B, H, S, D] fp32 or fp16, any strides; state: [K] fp32, any stride; index: [K] int32, below B * H.

    Returns z [K] in x's dtype and counts [B, H] int32, and adds the peaks to state.
    """
    B, H, S, D = x.shape
    (K,) = index.shape
    z = torch.empty(K, dtype=x.dtype, device=x.device)
    counts = torch.empty((B, H), dtype=torch.int32, device=x.device)
    peaks = torch.empty(B * H, dtype=torch.float32, device=x.device)
    pick_peaks_reduce_kernel[(B * H,)](
        x, peaks, counts, H, S, D, *x.stride(), BLOCK_S=BLOCK_S, BLOCK_D=triton.next_power_of_2(D)
    )
    pick_peaks_kernel[(triton.cdiv(K, BLOCK_K),)](
        peaks, state, index, z, K, state.stride(0), scale, CLAMP=clamp, BLOCK_K=BLOCK_K
    )
    return z, counts
