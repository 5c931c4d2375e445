"""Right: two configurations, which differ in the heads of a step and in warps; a row of a table by a function."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_of(table_ptr, p, i, half, stride_tp, stride_td):
    return tl.load(table_ptr + p * stride_tp + i * stride_td, mask=i < half, other=0.0)


@triton.autotune(
    configs=[triton.Config({"BLOCK_H": 4}, num_warps=2), triton.Config({"BLOCK_H": 32}, num_warps=8)], key=["H", "D"]
)
@triton.jit
def rope_kernel(
    q_ptr, cos_ptr, sin_ptr, positions_ptr, z_ptr, H, S, D,
    stride_qb, stride_qh, stride_qs, stride_qd, stride_tp, stride_td, stride_pb, stride_ps,
    stride_zb, stride_zh, stride_zs, stride_zd, BLOCK_D: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    s, b = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, BLOCK_D)
    p = tl.load(positions_ptr + b * stride_pb + s * stride_ps).to(tl.int64)
    c, n = (
        row_of(cos_ptr, p, i, D // 2, stride_tp, stride_td),
        row_of(sin_ptr, p, i, D // 2, stride_tp, stride_td),
    )
    for start in range(0, H, BLOCK_H):
        h = start + tl.arange(0, BLOCK_H)
        mask = (h[:, None] < H) & (i[None, :] < D // 2)
        left = h[:, None] * stride_qh + i[None, :] * stride_qd + b * stride_qb + s * stride_qs
        a = tl.load(q_ptr + left, mask=mask, other=0.0).to(tl.float32)
        e = tl.load(q_ptr + left + D // 2 * stride_qd, mask=mask, other=0.0).to(tl.float32)
        place = z_ptr + h[:, None] * stride_zh + i[None, :] * stride_zd + b * stride_zb + s * stride_zs
        tl.store(place, (a * c[None, :] - e * n[None, :]).to(z_ptr.dtype.element_ty), mask=mask)
        tl.store(place + D // 2 * stride_zd, (e * c + a * n).to(z_ptr.dtype.element_ty), mask=mask)


def rope(q, cos, sin, positions):
    B, H, S, D = q.shape
    z = torch.empty((B, H, S, D), dtype=q.dtype, device=q.device)
    rope_kernel[(S, B)](
        q, cos, sin, positions, z, H, S, D, *q.stride(), *cos.stride(), *positions.stride(), *z.stride(),
        BLOCK_D=triton.next_power_of_2(D // 2),
    )  # fmt: skip
    return z
