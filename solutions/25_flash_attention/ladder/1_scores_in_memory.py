"""25, rung 1: three launches, with the scores and the probabilities in memory between them.

What: a product makes the scores, in fp32; a softmax turns each row into probabilities, in the dtype of v, and leaves
lse; a second product mixes the values.
Why it is slow: all scores of all heads are written and read, and so are all probabilities.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 128
BLOCK_N = 64


@triton.jit
def attention_scores_kernel(
    q_ptr, k_ptr, s_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(2)
    b, h = head // H, head % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    keys = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    d = tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows * stride_qm + d[None, :] * stride_qd
    k_ptrs = k_ptr + b * stride_kb + h * stride_kh + keys * stride_kn + d[:, None] * stride_kd
    s = tl.dot(tl.load(q_ptrs, mask=rows < M, other=0.0), tl.load(k_ptrs, mask=keys < N, other=0.0)) * scale
    tl.store(s_ptr + (head * M + rows).to(tl.int64) * N + keys, s, mask=(rows < M) & (keys < N))


@triton.jit
def attention_softmax_kernel(s_ptr, p_ptr, lse_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    keys = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + row * N + keys, mask=keys < N, other=-float("inf"))
    greatest = tl.max(s, 0)
    e = tl.exp(s - greatest)
    total = tl.sum(e, 0)
    tl.store(p_ptr + row * N + keys, e / total, mask=keys < N)
    tl.store(lse_ptr + row, greatest + tl.log(total))


@triton.jit
def attention_mix_kernel(
    p_ptr, v_ptr, o_ptr, H, M, N, stride_vb, stride_vh, stride_vn, stride_vd,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    b, h = head // H, head % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    d = tl.arange(0, D)[None, :]
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        p_ptrs = p_ptr + (head * M + rows).to(tl.int64) * N + keys[None, :]
        p = tl.load(p_ptrs, mask=(rows < M) & (keys[None, :] < N), other=0.0)
        v_ptrs = v_ptr + b * stride_vb + h * stride_vh + keys[:, None] * stride_vn + d * stride_vd
        acc = tl.dot(p, tl.load(v_ptrs, mask=keys[:, None] < N, other=0.0), acc)
    tl.store(o_ptr + (head * M + rows) * D + d, acc, mask=rows < M)


def attention(q, k, v):
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    s = torch.empty((B, H, M, N), dtype=torch.float32, device=q.device)
    p = torch.empty((B, H, M, N), dtype=v.dtype, device=q.device)
    tiles, shapes = triton.cdiv(M, BLOCK_M), dict(D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=8)
    attention_scores_kernel[(tiles, triton.cdiv(N, BLOCK_N), B * H)](
        q, k, s, D**-0.5, H, M, N, *q.stride(), *k.stride(), **shapes
    )
    attention_softmax_kernel[(B * H * M,)](s, p, lse, N, BLOCK=triton.next_power_of_2(N), num_warps=8)
    attention_mix_kernel[(tiles, B * H)](p, v, o, H, M, N, *v.stride(), **shapes)
    return o, lse
