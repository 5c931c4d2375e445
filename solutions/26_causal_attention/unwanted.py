"""Kept out by the gate: the loop visits all tiles, and hides what the rule does not let a query see.

All else is as in the solution: base 2, p in the dtype of v, tensor cores for both products, loads that run ahead. Of a
square half of the work is for nothing.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 64


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, softcap, window, H, HK, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    HAS_WINDOW: tl.constexpr, HAS_CAP: tl.constexpr,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    at = rows + N - M
    d = tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows[:, None] < M, other=0.0)
    k_ptr += b * stride_kb + h // (H // HK) * stride_kh
    v_ptr += b * stride_vb + h // (H // HK) * stride_vh
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + keys[None, :] * stride_kn + d[:, None] * stride_kd, mask=keys[None, :] < N, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * stride_vn + d[None, :] * stride_vd, mask=keys[:, None] < N, other=0.0)
        s = tl.dot(q, k) * scale
        if HAS_CAP:
            s = softcap * (1 - 2 / (tl.exp(s * (2 / softcap)) + 1))
        seen = keys[None, :] <= at[:, None]
        if HAS_WINDOW:
            seen &= keys[None, :] > at[:, None] - window
        s = tl.where(seen, s * 1.4426950408889634, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        shift = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - shift[:, None])
        factor = tl.exp2(m - shift)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
        m = new
    row = tl.program_id(1) * M + rows
    o = acc / tl.where(total == 0, 1.0, total)[:, None]
    tl.store(o_ptr + row[:, None] * D + d[None, :], o, mask=rows[:, None] < M)
    tl.store(lse_ptr + row, (m + tl.log2(total)) * 0.6931471805599453, mask=rows < M)


def attention(q, k, v, window=None, softcap=None):
    B, H, M, D = q.shape
    HK, N = k.shape[1], k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    attention_kernel[(triton.cdiv(M, BLOCK_M), B * H)](
        q, k, v, o, lse, D**-0.5, softcap or 1.0, window or N, H, HK, M, N,
        *q.stride(), *k.stride(), *v.stride(), HAS_WINDOW=window is not None, HAS_CAP=softcap is not None,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=3,
    )  # fmt: skip
    return o, lse
