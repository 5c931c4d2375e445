"""Right: all heads of a token in one tile, as many as the next power of two; the second half comes first."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    q_ptr, cos_ptr, sin_ptr, positions_ptr, z_ptr, S, H: tl.constexpr, D: tl.constexpr,
    stride_qb, stride_qh, stride_qs, stride_qd, stride_tp, stride_td, stride_pb, stride_ps,
    HEADS: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    b, s = token // S, token % S
    row = tl.load(positions_ptr + b * stride_pb + s * stride_ps) * stride_tp
    pair = tl.arange(0, PAIRS)
    inside = pair < D // 2
    cos = tl.load(cos_ptr + row + pair * stride_td, mask=inside, other=0)[None, :]
    sin = tl.load(sin_ptr + row + pair * stride_td, mask=inside, other=0)[None, :]
    head = tl.arange(0, HEADS)[:, None]
    mask = (head < H) & inside[None, :]
    x = q_ptr + b * stride_qb + s * stride_qs + head * stride_qh + pair[None, :] * stride_qd
    z = z_ptr + b * (H * S * D) + s * D + head * (S * D) + pair[None, :]
    left = tl.load(x, mask=mask, other=0).to(tl.float32)
    right = tl.load(x + D // 2 * stride_qd, mask=mask, other=0).to(tl.float32)
    tl.store(z + D // 2, right * cos + left * sin, mask=mask)
    tl.store(z, left * cos - right * sin, mask=mask)


def rope(q, cos, sin, positions):
    B, H, S, D = q.shape
    z = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    rope_kernel[(B * S,)](
        q, cos, sin, positions, z, S, H, D, *q.stride(), *cos.stride(), *positions.stride(),
        HEADS=max(1, triton.next_power_of_2(H)), PAIRS=triton.next_power_of_2(D // 2), num_warps=8,
    )  # fmt: skip
    return z
