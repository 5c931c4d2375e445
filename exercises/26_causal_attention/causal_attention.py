"""26 · Causal attention: a rule says which keys a query sees, and the loop leaves out the tiles that nobody sees."""

import torch
import triton
import triton.language as tl

BLOCK_M = 64  # queries of one program
BLOCK_N = 64  # keys of one iteration


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, softcap, window, H, HK, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_ob, stride_oh, stride_om, stride_od,
    HAS_WINDOW: tl.constexpr, HAS_CAP: tl.constexpr,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program (i, j) makes tile i of BLOCK_M queries of head j, which is head j % H of batch j // H; lse is contiguous.
    # About 40 lines.
    # YOUR CODE HERE
    pass


def attention(q, k, v, window=None, softcap=None):
    """q: [B, H, M, D], k, v: [B, HK, N, D], fp16 or bf16, any strides; HK divides H; D is 16, 32, 64 or 128.

    Query i sees key j where j <= i + N - M, and j > i + N - M - window. softcap: scores are softcap tanh(s / softcap).
    Returns o, [B, H, M, D] contiguous, dtype of q, and lse, [B, H, M] fp32; 0 and -inf where nothing is seen.
    """
    # Make room for o and lse, choose grid and warps, launch once, return both: about 12 lines.
    # YOUR CODE HERE
    pass
