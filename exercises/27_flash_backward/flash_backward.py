"""27 · Flash attention, backward: P is made anew from lse, in two loops over the same pairs of tiles."""

import torch
import triton
import triton.language as tl

BLOCK_M = 64  # queries of a tile
BLOCK_N = 64  # keys of a tile


@triton.jit
def attention_delta_kernel(
    o_ptr, do_ptr, delta_ptr, H, M, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    # Program (i, j): delta of tile i of BLOCK_M queries of head j; o and delta are contiguous. About 7 lines.
    # YOUR CODE HERE
    pass


@triton.jit
def attention_dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program (i, j) owns tile i of BLOCK_N keys of head j and loops over the queries. About 30 lines.
    # YOUR CODE HERE
    pass


@triton.jit
def attention_dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program (i, j) owns tile i of BLOCK_M queries of head j and loops over the keys. About 25 lines.
    # YOUR CODE HERE
    pass


def attention_backward(q, k, v, o, lse, do):
    """q, do: [B, H, M, D], k, v: [B, H, N, D], fp16 or bf16, any strides; o, lse: as exercise 25 returns them.

    Returns dq, dk, dv, contiguous, with the shapes of q, k and v and their dtype. In fp32 and for a head:
    P = exp(q k^T / sqrt(D) - lse), delta = sum of o do in each row, dS = P (do v^T - delta),
    dv = P^T do, dk = dS^T q / sqrt(D), dq = dS k / sqrt(D).
    """
    # Make room for the results and for delta, launch three kernels, return dq, dk, dv: about 20 lines.
    # YOUR CODE HERE
    pass
