"""28 · Paged decoding: one query against a cache in pages; the keys are dealt out, and a second launch joins."""

import torch
import triton
import triton.language as tl

BLOCK_N = 64  # keys of one iteration
SPLITS = 16  # programs that share the keys of one sequence


@triton.jit
def paged_attention_partial_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, m_ptr, l_ptr, acc_ptr, scale, HK,
    stride_qb, stride_qh, stride_qd, stride_kp, stride_kr, stride_kh, stride_kd,
    stride_vp, stride_vr, stride_vh, stride_vd, stride_tb, stride_tt, stride_n,
    PAGE, GROUP: tl.constexpr, D: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    # Program (i, split) has head i % HK of the cache and sequence i // HK: its GROUP queries are rows of one tile. It
    # leaves m, l and acc of its keys for each of them, those of split s of query head j at (b * H + j) * SPLITS + s.
    # About 33 lines.
    # YOUR CODE HERE
    pass


@triton.jit
def paged_attention_combine_kernel(
    m_ptr, l_ptr, acc_ptr, o_ptr, D: tl.constexpr, SPLITS: tl.constexpr, BLOCK_S: tl.constexpr
):
    # Program i joins the SPLITS parts of one query head of one sequence; BLOCK_S >= SPLITS. About 12 lines.
    # YOUR CODE HERE
    pass


def paged_attention(q, k_cache, v_cache, block_table, lengths):
    """q: [B, H, D], k_cache, v_cache: [P, page, HK, D], fp16 or bf16; block_table: [B, T], lengths: [B], int32.

    Key j of sequence b is row j % page of page block_table[b, j // page]; head h has head h // (H / HK) of the caches.
    Returns o, [B, H, D] contiguous, dtype of q: softmax(q k^T / sqrt(D)) v of each sequence; 0 where it has no key.
    """
    # Make room for o and for the parts in fp32, launch both kernels, return o: about 18 lines.
    # YOUR CODE HERE
    pass
