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
    ### BEGIN SOLUTION
    s, b = tl.program_id(0), tl.program_id(1)
    half = D // 2  # the block may be larger: it is a power of two, and half of D need not be one
    i = tl.arange(0, BLOCK_D)[None, :]  # the number of a pair: elements i and half + i of q, column i of the tables
    # One row of each table serves all heads, so it is loaded before the loop. Nothing is summed over lanes, and what a
    # masked one holds is never stored: no load needs `other`.
    p = tl.load(positions_ptr + b * stride_pb + s * stride_ps)
    c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=i < half)  # [1, BLOCK_D]
    n = tl.load(sin_ptr + p * stride_tp + i * stride_td, mask=i < half)
    for start in range(0, H, BLOCK_H):
        h = start + tl.arange(0, BLOCK_H)[:, None]
        mask = (h < H) & (i < half)  # the same for both halves
        q_ptrs = q_ptr + b * stride_qb + h * stride_qh + s * stride_qs + i * stride_qd
        a = tl.load(q_ptrs, mask=mask)
        e = tl.load(q_ptrs + half * stride_qd, mask=mask)
        # c and n are fp32, so the products are, whatever the dtype of a and e; only the store rounds to it.
        z_ptrs = z_ptr + b * stride_zb + h * stride_zh + s * stride_zs + i * stride_zd
        tl.store(z_ptrs, a * c - e * n, mask=mask)
        tl.store(z_ptrs + half * stride_zd, e * c + a * n, mask=mask)
    ### END SOLUTION


def rope(q, cos, sin, positions):
    """q: [B, H, S, D] fp32, fp16 or bf16, any strides; cos, sin: [P, D / 2] fp32, strides alike; positions: [B, S].

    Returns z, [B, H, S, D] contiguous, dtype of q: pairs (i, D / 2 + i) rotated by row positions[b, s] of the tables.
    """
    # z, the grid (S, B), block sizes and strides: about 9 lines.
    ### BEGIN SOLUTION
    B, H, S, D = q.shape
    z = torch.empty((B, H, S, D), dtype=q.dtype, device=q.device)  # empty_like would take over the strides of a view
    BLOCK_D = triton.next_power_of_2(D // 2)  # tl.arange wants a power of two
    rope_kernel[(S, B)](  # axis 0 counts positions: neighbours in memory, and axis 1 ends at 65535
        q, cos, sin, positions, z, H, S, D,
        *q.stride(), *cos.stride(), *positions.stride(), *z.stride(), BLOCK_H=BLOCK_H, BLOCK_D=BLOCK_D, num_warps=4,
    )  # fmt: skip
    return z
    ### END SOLUTION
