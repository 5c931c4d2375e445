"""Right: everything in base e, k turned by tl.trans, rows past the end of q taken from its beginning, one grid axis."""

import torch
import triton
import triton.language as tl

BLOCK_M = 128
BLOCK_N = 64


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M)
    head = tl.program_id(0) // tiles
    b, h = head // H, head % H
    rows = tl.program_id(0) % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + b * stride_qb + h * stride_qh + (rows % M)[:, None] * stride_qm + d[None, :] * stride_qd)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        there = (keys < N)[:, None]
        k_ptrs = k_ptr + b * stride_kb + h * stride_kh + keys[:, None] * stride_kn + d[None, :] * stride_kd
        v_ptrs = v_ptr + b * stride_vb + h * stride_vh + keys[:, None] * stride_vn + d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=there)  # no `other`: scores of such lanes are replaced
        v = tl.load(v_ptrs, mask=there, other=0.0)
        s = tl.where((keys < N)[None, :], tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        factor = tl.exp(m - new)
        total = total * factor + tl.sum(p, 1)
        acc = acc * factor[:, None] + tl.dot(p.to(v.dtype), v)
        m = new
    o = acc / total[:, None]
    tl.store(o_ptr + (head * M + rows)[:, None] * D + d[None, :], o, mask=(rows < M)[:, None])
    tl.store(lse_ptr + head * M + rows, m + tl.log(total), mask=rows < M)


def attention(q, k, v):
    B, H, M, D = q.shape
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    attention_kernel[(triton.cdiv(M, BLOCK_M) * B * H,)](
        q, k, v, o, lse, D**-0.5, H, M, k.shape[2], *q.stride(), *k.stride(), *v.stride(),
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=8, num_stages=2,
    )  # fmt: skip
    return o, lse
