"""Right: at most 64 programs, each of which loops over every 64th token; pairs in steps of a fixed block."""

import triton
import triton.language as tl

PROGRAMS, BLOCK_H, BLOCK_D = 64, 32, 32


@triton.jit
def rope_kernel(
    q_ptr, cos_ptr, sin_ptr, positions_ptr, z_ptr, B, H, S, D,
    stride_qb, stride_qh, stride_qs, stride_qd, stride_tp, stride_td, stride_pb, stride_ps,
    stride_zb, stride_zh, stride_zs, stride_zd, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    half = D // 2
    for token in range(tl.program_id(0), B * S, tl.num_programs(0)):
        b, s = token // S, token % S
        p = tl.load(positions_ptr + b * stride_pb + s * stride_ps)
        for start in range(0, half, BLOCK_D):
            i = start + tl.arange(0, BLOCK_D)[None, :]
            c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=i < half)
            n = tl.load(sin_ptr + p * stride_tp + i * stride_td, mask=i < half)
            for first in range(0, H, BLOCK_H):
                h = first + tl.arange(0, BLOCK_H)[:, None]
                mask = (h < H) & (i < half)
                q_ptrs = q_ptr + b * stride_qb + h * stride_qh + s * stride_qs + i * stride_qd
                a = tl.load(q_ptrs, mask=mask)
                e = tl.load(q_ptrs + half * stride_qd, mask=mask)
                z_ptrs = z_ptr + b * stride_zb + h * stride_zh + s * stride_zs + i * stride_zd
                tl.store(z_ptrs, tl.fma(a.to(tl.float32), c, -(e * n)), mask=mask)
                tl.store(z_ptrs + half * stride_zd, tl.fma(e.to(tl.float32), c, a * n), mask=mask)


def rope(q, cos, sin, positions):
    B, H, S, D = q.shape
    z = q.new_empty((B, H, S, D))
    rope_kernel[(min(B * S, PROGRAMS),)](
        q, cos, sin, positions, z, B, H, S, D, *q.stride(), *cos.stride(), *positions.stride(), *z.stride(),
        BLOCK_H=BLOCK_H, BLOCK_D=BLOCK_D,
    )  # fmt: skip
    return z
