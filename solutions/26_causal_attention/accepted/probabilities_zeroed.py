"""Right: base e, p is set to 0 after the exponential, tanh comes of a sigmoid, and without a window it is N keys long.

The maximum of a row that has seen nothing is that of hidden scores, which is finite: what is measured against it is 0
until a key is seen, and from then on the factor shrinks nothing but 0. One axis of programs; the tile of k is turned.
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
    HAS_CAP: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M)
    head, first = tl.program_id(0) // tiles, tl.program_id(0) % tiles * BLOCK_M
    b, h = head // H, head % H
    rows = first + tl.arange(0, BLOCK_M)
    at = rows + (N - M)
    d = tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows[:, None] < M, other=0.0)
    shared = h * HK // H
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    begin = tl.maximum(first + (N - M) - window + 1, 0)
    end = tl.minimum(first + BLOCK_M + (N - M), N)
    for start in range(begin - begin % BLOCK_N, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        there = (keys < N)[:, None]
        k_ptrs = k_ptr + b * stride_kb + shared * stride_kh + keys[:, None] * stride_kn + d[None, :] * stride_kd
        v_ptrs = v_ptr + b * stride_vb + shared * stride_vh + keys[:, None] * stride_vn + d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=there, other=0.0)
        v = tl.load(v_ptrs, mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        if HAS_CAP:
            s = softcap * (2 * tl.sigmoid(2 * s / softcap) - 1)
        seen = (keys[None, :] <= at[:, None]) & (keys[None, :] > at[:, None] - window)
        new = tl.maximum(m, tl.max(tl.where(seen, s, -1e30), 1))
        p = tl.where(seen, tl.exp(s - new[:, None]), 0.0)
        factor = tl.exp(m - new)
        total = total * factor + tl.sum(p, 1)
        acc = acc * factor[:, None] + tl.dot(p.to(v.dtype), v)
        m = new
    o = tl.where(total[:, None] > 0, acc / total[:, None], 0.0)
    tl.store(o_ptr + (head * M + rows)[:, None] * D + d[None, :], o, mask=(rows < M)[:, None])
    tl.store(lse_ptr + head * M + rows, m + tl.log(total), mask=rows < M)


def attention(q, k, v, window=None, softcap=None):
    B, H, M, D = q.shape
    HK, N = k.shape[1], k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    attention_kernel[(triton.cdiv(M, BLOCK_M) * B * H,)](
        q, k, v, o, lse, D**-0.5, softcap, N if window is None else window, H, HK, M, N,
        *q.stride(), *k.stride(), *v.stride(),
        HAS_CAP=softcap is not None, D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=8 if D > 64 else 4, num_stages=2,
    )  # fmt: skip
    return o, lse
