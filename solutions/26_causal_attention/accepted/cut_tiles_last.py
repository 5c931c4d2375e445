"""Right: tiles that all queries see have no mask; those that the rule cuts come before and after them.

As libraries have it: three parts of one loop, of which the middle one compares nothing; the longest loops start first.
It is the last rung of `course ladder 26` too.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 64


@triton.jit
def some_tiles(
    q, k_ptr, v_ptr, begin, end, m, total, acc, at, window, softcap, scale, N,
    stride_kn, stride_kd, stride_vn, stride_vd,
    CUT: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_CAP: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    d = tl.arange(0, D)
    for start in range(begin, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + keys[None, :] * stride_kn + d[:, None] * stride_kd
        v_ptrs = v_ptr + keys[:, None] * stride_vn + d[None, :] * stride_vd
        if CUT:
            k = tl.load(k_ptrs, mask=keys[None, :] < N, other=0.0)
            v = tl.load(v_ptrs, mask=keys[:, None] < N, other=0.0)
        else:
            k = tl.load(k_ptrs)
            v = tl.load(v_ptrs)
        s = tl.dot(q, k) * scale
        if HAS_CAP:
            s = softcap - 2 * softcap / (tl.exp(s * (2 / softcap)) + 1)
        s = s * 1.4426950408889634
        if CUT:
            seen = keys[None, :] <= at[:, None]
            if HAS_WINDOW:
                seen = seen & (at[:, None] - keys[None, :] < window)
            s = tl.where(seen, s, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        shift = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - shift[:, None])
        factor = tl.exp2(m - shift)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
        m = new
    return m, total, acc


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, softcap, window, H, HK, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    HAS_WINDOW: tl.constexpr, HAS_CAP: tl.constexpr,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    at = rows + N - M
    d = tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows[:, None] < M, other=0.0)
    k_ptr += b * stride_kb + h // (H // HK) * stride_kh
    v_ptr += b * stride_vb + h // (H // HK) * stride_vh
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    at_first = first + N - M
    end = tl.minimum(at_first + BLOCK_M, N)
    begin = at_first * 0
    whole = begin  # from here on all queries see all keys of a tile
    if HAS_WINDOW:
        begin = tl.maximum(at_first - window + 1, 0) // BLOCK_N * BLOCK_N
        whole = tl.cdiv(tl.maximum(at_first + BLOCK_M - window, 0), BLOCK_N) * BLOCK_N
    cut = tl.maximum(tl.minimum(at_first + 1, N), 0) // BLOCK_N * BLOCK_N  # and up to here
    whole = tl.minimum(whole, tl.maximum(cut, begin))
    cut = tl.maximum(cut, whole)
    m, total, acc = some_tiles(
        q, k_ptr, v_ptr, begin, tl.minimum(whole, end), m, total, acc, at, window, softcap, scale, N,
        stride_kn, stride_kd, stride_vn, stride_vd, True, HAS_WINDOW, HAS_CAP, D, BLOCK_N,
    )  # fmt: skip
    m, total, acc = some_tiles(
        q, k_ptr, v_ptr, whole, cut, m, total, acc, at, window, softcap, scale, N,
        stride_kn, stride_kd, stride_vn, stride_vd, False, HAS_WINDOW, HAS_CAP, D, BLOCK_N,
    )  # fmt: skip
    m, total, acc = some_tiles(
        q, k_ptr, v_ptr, cut, end, m, total, acc, at, window, softcap, scale, N,
        stride_kn, stride_kd, stride_vn, stride_vd, True, HAS_WINDOW, HAS_CAP, D, BLOCK_N,
    )  # fmt: skip
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
