"""27, rung 1: P and dS of all heads in memory, made by one launch, used by two.

What: the owner of a tile of pairs makes P and dS and writes both, in the dtype of q; then dv and dk are two products
along the queries, and dq is one along the keys.
Why it is slow: two tensors of M x N for every head are written once, and read three times in all.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 64


@triton.jit
def attention_delta_kernel(
    o_ptr, do_ptr, delta_ptr, H, M, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    rows, d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    o = tl.load(o_ptr + (head * M + rows[:, None]) * D + d[None, :], mask=rows[:, None] < M)
    do_ptr += head // H * stride_dob + head % H * stride_doh
    do = tl.load(do_ptr + rows[:, None] * stride_dom + d[None, :] * stride_dod, mask=rows[:, None] < M)
    tl.store(delta_ptr + head * M + rows, tl.sum(o.to(tl.float32) * do.to(tl.float32), 1), mask=rows < M)


@triton.jit
def attention_pairs_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, p_ptr, ds_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(2)
    b, h = head // H, head % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    keys, d = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    k_ptrs = k_ptr + b * stride_kb + h * stride_kh + keys[None, :] * stride_kn + d[:, None] * stride_kd
    v_ptrs = v_ptr + b * stride_vb + h * stride_vh + keys[None, :] * stride_vn + d[:, None] * stride_vd
    do_ptrs = do_ptr + b * stride_dob + h * stride_doh + rows[:, None] * stride_dom + d[None, :] * stride_dod
    q, do = tl.load(q_ptrs, mask=rows[:, None] < M), tl.load(do_ptrs, mask=rows[:, None] < M)
    k, v = tl.load(k_ptrs, mask=keys[None, :] < N), tl.load(v_ptrs, mask=keys[None, :] < N)
    lse = tl.load(lse_ptr + head * M + rows, mask=rows < M)
    delta = tl.load(delta_ptr + head * M + rows, mask=rows < M)
    p = tl.exp(tl.dot(q, k) * scale - lse[:, None])
    ds = p * (tl.dot(do, v) - delta[:, None])
    pairs = (head * M + rows[:, None]).to(tl.int64) * N + keys[None, :]
    there = (rows[:, None] < M) & (keys[None, :] < N)
    tl.store(p_ptr + pairs, p, mask=there)
    tl.store(ds_ptr + pairs, ds, mask=there)


@triton.jit
def attention_dkdv_kernel(
    p_ptr, ds_ptr, q_ptr, do_ptr, dk_ptr, dv_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    keys, d = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, D)
    q_ptr += head // H * stride_qb + head % H * stride_qh
    do_ptr += head // H * stride_dob + head % H * stride_doh
    dk, dv = tl.zeros((BLOCK_N, D), tl.float32), tl.zeros((BLOCK_N, D), tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        pairs = (head * M + rows[None, :]).to(tl.int64) * N + keys[:, None]
        there = (rows[None, :] < M) & (keys[:, None] < N)
        q = tl.load(q_ptr + rows[:, None] * stride_qm + d[None, :] * stride_qd, mask=rows[:, None] < M, other=0.0)
        do = tl.load(do_ptr + rows[:, None] * stride_dom + d[None, :] * stride_dod, mask=rows[:, None] < M, other=0.0)
        dv = tl.dot(tl.load(p_ptr + pairs, mask=there, other=0.0), do, dv)
        dk = tl.dot(tl.load(ds_ptr + pairs, mask=there, other=0.0), q, dk)
    places = (head * N + keys[:, None]) * D + d[None, :]
    tl.store(dk_ptr + places, dk * scale, mask=keys[:, None] < N)
    tl.store(dv_ptr + places, dv, mask=keys[:, None] < N)


@triton.jit
def attention_dq_kernel(
    ds_ptr, k_ptr, dq_ptr, scale, H, M, N, stride_kb, stride_kh, stride_kn, stride_kd,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    rows, d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    k_ptr += head // H * stride_kb + head % H * stride_kh
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        pairs = (head * M + rows[:, None]).to(tl.int64) * N + keys[None, :]
        ds = tl.load(ds_ptr + pairs, mask=(rows[:, None] < M) & (keys[None, :] < N), other=0.0)
        k = tl.load(k_ptr + keys[:, None] * stride_kn + d[None, :] * stride_kd, mask=keys[:, None] < N, other=0.0)
        dq = tl.dot(ds, k, dq)
    places = (head * M + rows[:, None]) * D + d[None, :]
    tl.store(dq_ptr + places, dq * scale, mask=rows[:, None] < M)


def attention_backward(q, k, v, o, lse, do):
    B, H, M, D = q.shape
    N = k.shape[2]
    dq = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    dk, dv = (torch.empty((B, H, N, D), dtype=q.dtype, device=q.device) for _ in range(2))
    delta = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    p, ds = (torch.empty((B, H, M, N), dtype=q.dtype, device=q.device) for _ in range(2))
    tiles, of_keys = triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N)
    shapes = dict(D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=1)
    attention_delta_kernel[(tiles, B * H)](o, do, delta, H, M, *do.stride(), D=D, BLOCK_M=BLOCK_M)
    attention_pairs_kernel[(tiles, of_keys, B * H)](
        q, k, v, do, lse, delta, p, ds, D**-0.5, H, M, N, *q.stride(), *k.stride(), *v.stride(), *do.stride(), **shapes
    )
    attention_dkdv_kernel[(of_keys, B * H)](p, ds, q, do, dk, dv, D**-0.5, H, M, N, *q.stride(), *do.stride(), **shapes)
    attention_dq_kernel[(tiles, B * H)](ds, k, dq, D**-0.5, H, M, N, *k.stride(), **shapes)
    return dq, dk, dv
