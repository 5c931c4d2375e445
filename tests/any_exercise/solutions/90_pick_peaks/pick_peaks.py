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
    ### BEGIN SOLUTION
    pid = tl.program_id(0)
    base = x_ptr + pid // H * stride_xb + pid % H * stride_xh
    cols = tl.arange(0, BLOCK_D)[None, :]
    peak = tl.full((BLOCK_S, BLOCK_D), float("-inf"), tl.float32)
    count = tl.zeros((BLOCK_S, BLOCK_D), tl.int32)
    for start in range(0, S, BLOCK_S):
        rows = start + tl.arange(0, BLOCK_S)[:, None]
        mask = (rows < S) & (cols < D)
        tile = tl.load(base + rows * stride_xs + cols * stride_xd, mask=mask, other=float("-inf")).to(tl.float32)
        peak = tl.maximum(peak, tile)
        count += (tile > 0).to(tl.int32)
    tl.store(peaks_ptr + pid, tl.max(tl.max(peak, 1), 0))
    tl.store(counts_ptr + pid, tl.sum(tl.sum(count, 1), 0))
    ### END SOLUTION


@triton.jit
def pick_peaks_kernel(
    peaks_ptr, state_ptr, index_ptr, z_ptr, K, stride_state, scale, CLAMP: tl.constexpr, BLOCK_K: tl.constexpr
):
    # Program p makes BLOCK_K elements of z, and updates as many of state: about 8 lines.
    ### BEGIN SOLUTION
    picks = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    mask = picks < K
    index = tl.load(index_ptr + picks, mask=mask, other=0)
    peaks = tl.load(peaks_ptr + index, mask=mask, other=0.0)
    z = peaks * scale
    if CLAMP:
        z = tl.maximum(z, 0.0)
    tl.store(z_ptr + picks, z, mask=mask)
    state = tl.load(state_ptr + picks * stride_state, mask=mask)
    tl.store(state_ptr + picks * stride_state, state + peaks, mask=mask)
    ### END SOLUTION


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
