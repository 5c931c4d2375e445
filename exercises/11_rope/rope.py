"""11 · RoPE: rotate queries by their positions; one program per token, all heads in it."""

import torch
import triton
import triton.language as tl

BLOCK_H = 16  # heads of one step; with 64 pairs per head a tile of 1024 pairs, 8 for each thread of 4 warps


@triton.jit
def rope_kernel(
    q_ptr, cos_ptr, sin_ptr, positions_ptr, z_ptr, H, S, D,
    stride_qb, stride_qh, stride_qs, stride_qd, stride_tp, stride_td, stride_pb, stride_ps,
    stride_zb, stride_zh, stride_zs, stride_zd, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    # The program (s, b) rotates token s of batch b in all heads, BLOCK_H of them at a time. Both tables
    # have the strides stride_t. BLOCK_D >= D // 2: about 19 lines.
    # YOUR CODE HERE
    pass


def rope(q, cos, sin, positions):
    """q: [B, H, S, D] fp32, fp16 or bf16, any strides; cos, sin: [P, D / 2] fp32, strides alike; positions: [B, S].

    Returns z, [B, H, S, D] contiguous, dtype of q: pairs (i, D / 2 + i) rotated by row positions[b, s] of the tables.
    """
    # z, the grid (S, B), block sizes and strides: about 9 lines.
    # YOUR CODE HERE
    pass
