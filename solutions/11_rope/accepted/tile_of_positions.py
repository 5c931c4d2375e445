"""Right: a program owns several positions of a batch, and keeps their rows of the tables through a loop over heads."""

import torch
import triton
import triton.language as tl

BLOCK_S = 8


@triton.jit
def rope_kernel(
    q_ptr, cos_ptr, sin_ptr, positions_ptr, z_ptr, H, S, D,
    stride_qb, stride_qh, stride_qs, stride_qd, stride_tp, stride_td, stride_pb, stride_ps,
    stride_zb, stride_zh, stride_zs, stride_zd, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(1)
    s = tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S)
    i = tl.arange(0, BLOCK_D)[None, :]
    mask = (s[:, None] < S) & (i < D // 2)
    p = tl.load(positions_ptr + b * stride_pb + s * stride_ps, mask=s < S, other=0)[:, None]
    c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=mask, other=0.0)
    n = tl.load(sin_ptr + p * stride_tp + i * stride_td, mask=mask, other=0.0)
    q_ptrs = q_ptr + b * stride_qb + s[:, None] * stride_qs + i * stride_qd
    z_ptrs = z_ptr + b * stride_zb + s[:, None] * stride_zs + i * stride_zd
    for _ in range(H):
        a = tl.load(q_ptrs, mask=mask, other=0.0)
        e = tl.load(q_ptrs + D // 2 * stride_qd, mask=mask, other=0.0)
        tl.store(z_ptrs, a * c - e * n, mask=mask)
        tl.store(z_ptrs + D // 2 * stride_zd, e * c + a * n, mask=mask)
        q_ptrs += stride_qh
        z_ptrs += stride_zh


def rope(q, cos, sin, positions):
    B, H, S, D = q.shape
    z = torch.empty((B, H, S, D), dtype=q.dtype, device=q.device)
    rope_kernel[(triton.cdiv(S, BLOCK_S), B)](
        q, cos, sin, positions, z, H, S, D, *q.stride(), *cos.stride(), *positions.stride(), *z.stride(),
        BLOCK_S=BLOCK_S, BLOCK_D=triton.next_power_of_2(D // 2), num_warps=2,
    )  # fmt: skip
    return z
