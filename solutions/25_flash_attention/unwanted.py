"""Kept out by the gate: tiles of 32 queries and 32 keys, and loads that run one iteration ahead.

All else is as in the solution: base 2, p in the dtype of v, tensor cores for both products. What is left out is what no
count shows: each iteration has an eighth of the products, k and v are read four times as often, and the tensor cores'
widest instruction wants 64 rows.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 32
BLOCK_N = 32


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows[:, None] < M, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + b * stride_kb + h * stride_kh + keys[None, :] * stride_kn + d[:, None] * stride_kd
        v_ptrs = v_ptr + b * stride_vb + h * stride_vh + keys[:, None] * stride_vn + d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=keys[None, :] < N, other=0.0)
        v = tl.load(v_ptrs, mask=keys[:, None] < N, other=0.0)
        s = tl.where(keys[None, :] < N, tl.dot(q, k) * (scale * 1.4426950408889634), -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(m - new)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
        m = new
    row = tl.program_id(1) * M + rows
    tl.store(o_ptr + row[:, None] * D + d[None, :], acc / total[:, None], mask=rows[:, None] < M)
    tl.store(lse_ptr + row, (m + tl.log2(total)) * 0.6931471805599453, mask=rows < M)


def attention(q, k, v):
    B, H, M, D = q.shape
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    attention_kernel[(triton.cdiv(M, BLOCK_M), B * H)](
        q, k, v, o, lse, D**-0.5, H, M, k.shape[2], *q.stride(), *k.stride(), *v.stride(),
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=2,
    )  # fmt: skip
    return o, lse
