"""Right: scores stay as the product makes them; the maximum is scaled, and the exponent is one multiply-add.

As the tutorial of the Triton project has it: whole tiles come first, without a mask, and the last one by itself.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 64


@triton.jit
def one_tile(q, k, v, m, total, acc, factor_of_scores, there):
    s = tl.where(there[None, :], tl.dot(q, k), -float("inf"))
    new = tl.maximum(m, tl.max(s, 1) * factor_of_scores)
    p = tl.exp2(s * factor_of_scores - new[:, None])
    shrink = tl.exp2(m - new)
    return new, total * shrink + tl.sum(p, 1), tl.dot(p.to(v.dtype), v, acc * shrink[:, None])


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d, lanes = tl.arange(0, D), tl.arange(0, BLOCK_N)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows[:, None] < M, other=0.0)
    k_ptrs = k_ptr + b * stride_kb + h * stride_kh + lanes[None, :] * stride_kn + d[:, None] * stride_kd
    v_ptrs = v_ptr + b * stride_vb + h * stride_vh + lanes[:, None] * stride_vn + d[None, :] * stride_vd
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    in_base_2 = scale * 1.44269504
    whole = N // BLOCK_N * BLOCK_N
    for _ in range(0, whole, BLOCK_N):
        m, total, acc = one_tile(q, tl.load(k_ptrs), tl.load(v_ptrs), m, total, acc, in_base_2, lanes >= 0)
        k_ptrs += BLOCK_N * stride_kn
        v_ptrs += BLOCK_N * stride_vn
    if whole < N:
        there = whole + lanes < N
        k = tl.load(k_ptrs, mask=there[None, :], other=0.0)
        v = tl.load(v_ptrs, mask=there[:, None], other=0.0)
        m, total, acc = one_tile(q, k, v, m, total, acc, in_base_2, there)
    at = tl.program_id(1) * M + rows
    tl.store(o_ptr + at[:, None] * D + d[None, :], acc / total[:, None], mask=rows[:, None] < M)
    tl.store(lse_ptr + at, (m + tl.log2(total)) / 1.44269504, mask=rows < M)


def attention(q, k, v):
    B, H, M, D = q.shape
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    attention_kernel[(triton.cdiv(M, BLOCK_M), B * H)](
        q, k, v, o, lse, D**-0.5, H, M, k.shape[2], *q.stride(), *k.stride(), *v.stride(),
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=3,
    )  # fmt: skip
    return o, lse
