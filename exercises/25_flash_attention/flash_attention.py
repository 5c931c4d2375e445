"""25 · Flash attention: one tile of queries meets the keys tile by tile; the scores never leave the chip."""

import torch
import triton
import triton.language as tl

BLOCK_M = 128  # queries of one program
BLOCK_N = 64  # keys of one iteration


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_ob, stride_oh, stride_om, stride_od,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program (i, j) makes tile i of BLOCK_M queries of head j, which is head j % H of batch j // H; lse is contiguous.
    # About 30 lines.
    # YOUR CODE HERE
    pass


def attention(q, k, v):
    """q: [B, H, M, D], k, v: [B, H, N, D], fp16 or bf16, any strides; D is 16, 32, 64 or 128.

    Returns o, [B, H, M, D] contiguous, dtype of q: softmax(q k^T / sqrt(D)) v, and lse, [B, H, M] fp32: log of the sum
    of exponentials of each row's scores.
    """
    # Make room for o and lse, choose grid and warps, launch once, return both: about 10 lines.
    # YOUR CODE HERE
    pass
