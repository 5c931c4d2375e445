"""Right: both halves in one load, [heads, pairs, 2], taken apart with tl.split and put together with tl.join."""

import torch
import triton
import triton.language as tl

BLOCK_H = 8


@triton.jit
def rotated(x, c, n):
    a, e = tl.split(x)
    return tl.join(a * c - e * n, a * n + e * c)


@triton.jit
def rope_kernel(
    q_ptr, cos_ptr, sin_ptr, positions_ptr, z_ptr, H, S, HALF,
    stride_qb, stride_qh, stride_qs, stride_qd, stride_tp, stride_td, stride_pb, stride_ps,
    BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    s, b = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, BLOCK_D)
    p = tl.load(positions_ptr + b * stride_pb + s * stride_ps)
    c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=i < HALF)[None, :]
    n = tl.load(sin_ptr + p * stride_tp + i * stride_td, mask=i < HALF)[None, :]
    d = i[None, :, None] + HALF * tl.arange(0, 2)[None, None, :]
    start = 0
    while start < H:
        h = start + tl.arange(0, BLOCK_H)[:, None, None]
        mask = (h < H) & (i < HALF)[None, :, None] & (d >= 0)
        x = tl.load(q_ptr + b * stride_qb + h * stride_qh + s * stride_qs + d * stride_qd, mask=mask)
        z = ((b * H + h) * S + s) * (2 * HALF) + d
        tl.store(z_ptr + z, rotated(x.to(tl.float32), c, n), mask=mask)
        start += BLOCK_H


def rope(q, cos, sin, positions):
    B, H, S, D = q.shape
    z = torch.empty((B, H, S, D), dtype=q.dtype, device=q.device)
    rope_kernel[(S, B)](
        q, cos, sin, positions, z, H, S, D // 2, *q.stride(), *cos.stride(), *positions.stride(),
        BLOCK_H=BLOCK_H, BLOCK_D=triton.next_power_of_2(D // 2),
    )  # fmt: skip
    return z
