"""Right: the heads that share keys and values are rows of one tile, a power of two of them for each query.

As vLLM's unified attention has them. Rows beyond the group read its last head, and are not stored.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 32


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, softcap, window, H, HK, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    HAS_WINDOW: tl.constexpr, HAS_CAP: tl.constexpr,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    b, shared = tl.program_id(1) // HK, tl.program_id(1) % HK
    group = H // HK
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    queries, h = rows // PADDED, shared * group + tl.minimum(rows % PADDED, group - 1)
    there = (queries < M) & (rows % PADDED < group)
    first = tl.program_id(0) * BLOCK_M // PADDED
    last = (tl.program_id(0) * BLOCK_M + BLOCK_M - 1) // PADDED
    at = queries + N - M
    d = tl.arange(0, D)
    q_rows = b * stride_qb + h * stride_qh + queries * stride_qm
    q = tl.load(q_ptr + q_rows[:, None] + d[None, :] * stride_qd, mask=queries[:, None] < M, other=0.0)
    k_ptr += b * stride_kb + shared * stride_kh
    v_ptr += b * stride_vb + shared * stride_vh
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    begin, end = 0, tl.minimum(last + 1 + N - M, N)
    if HAS_WINDOW:
        begin = tl.maximum(first + N - M - window + 1, 0) // BLOCK_N * BLOCK_N
    for start in range(begin, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + keys[None, :] * stride_kn + d[:, None] * stride_kd, mask=keys[None, :] < N, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * stride_vn + d[None, :] * stride_vd, mask=keys[:, None] < N, other=0.0)
        s = tl.dot(q, k) * scale
        if HAS_CAP:
            x = tl.abs(s) * (2 / softcap)
            bent = softcap * (1 - 2 / (tl.exp(x) + 1))
            s = tl.where(s < 0, -bent, bent)
        behind = at[:, None] - keys[None, :]
        seen = behind >= 0
        if HAS_WINDOW:
            seen &= behind < window
        s = tl.where(seen, s * 1.4426950408889634, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        shift = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - shift[:, None])
        factor = tl.exp2(m - shift)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
        m = new
    row = (b * H + h) * M + queries
    o = acc / tl.where(total == 0, 1.0, total)[:, None]
    tl.store(o_ptr + row[:, None] * D + d[None, :], o, mask=there[:, None])
    tl.store(lse_ptr + row, (m + tl.log2(total)) * 0.6931471805599453, mask=there)


def attention(q, k, v, window=None, softcap=None):
    B, H, M, D = q.shape
    HK, N = k.shape[1], k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    padded = triton.next_power_of_2(H // HK)
    attention_kernel[(triton.cdiv(M * padded, BLOCK_M), B * HK)](
        q, k, v, o, lse, D**-0.5, softcap or 1.0, window or N, H, HK, M, N,
        *q.stride(), *k.stride(), *v.stride(), HAS_WINDOW=window is not None, HAS_CAP=softcap is not None,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, PADDED=padded, num_warps=4, num_stages=2,
    )  # fmt: skip
    return o, lse
