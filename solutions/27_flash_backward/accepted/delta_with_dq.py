"""Right: two launches. The owner of queries makes delta for itself and leaves it to the loop that comes after."""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 64


@triton.jit
def attention_dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    keys, d = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, D)
    k_ptrs = k_ptr + b * stride_kb + h * stride_kh + keys[:, None] * stride_kn + d[None, :] * stride_kd
    k = tl.load(k_ptrs, mask=keys[:, None] < N)
    v_ptrs = v_ptr + b * stride_vb + h * stride_vh + keys[:, None] * stride_vn + d[None, :] * stride_vd
    v = tl.load(v_ptrs, mask=keys[:, None] < N)
    q_ptr += b * stride_qb + h * stride_qh
    do_ptr += b * stride_dob + h * stride_doh
    lse_ptr += tl.program_id(1) * M
    delta_ptr += tl.program_id(1) * M
    to_base_2 = scale * 1.4426950408889634
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    for iteration in range(tl.cdiv(M, BLOCK_M)):
        rows = iteration * BLOCK_M + tl.arange(0, BLOCK_M)
        q = tl.load(q_ptr + rows[:, None] * stride_qm + d[None, :] * stride_qd, mask=rows[:, None] < M, other=0.0)
        do = tl.load(do_ptr + rows[:, None] * stride_dom + d[None, :] * stride_dod, mask=rows[:, None] < M, other=0.0)
        lse = tl.load(lse_ptr + rows, mask=rows < M, other=0.0) * 1.4426950408889634
        delta = tl.load(delta_ptr + rows, mask=rows < M, other=0.0)
        p = tl.exp2(tl.dot(k, tl.trans(q)) * to_base_2 - lse[None, :])
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = p * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    places = (tl.program_id(1) * N + keys[:, None]) * D + d[None, :]
    tl.store(dk_ptr + places, dk * scale, mask=keys[:, None] < N)
    tl.store(dv_ptr + places, dv, mask=keys[:, None] < N)


@triton.jit
def attention_dq_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    rows, d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows[:, None] < M)
    do_ptrs = do_ptr + b * stride_dob + h * stride_doh + rows[:, None] * stride_dom + d[None, :] * stride_dod
    do = tl.load(do_ptrs, mask=rows[:, None] < M)
    lse = tl.load(lse_ptr + tl.program_id(1) * M + rows, mask=rows < M) * 1.4426950408889634
    places = (tl.program_id(1) * M + rows[:, None]) * D + d[None, :]
    o = tl.load(o_ptr + places, mask=rows[:, None] < M)
    delta = tl.sum(o.to(tl.float32) * do, 1)
    tl.store(delta_ptr + tl.program_id(1) * M + rows, delta, mask=rows < M)
    k_ptr += b * stride_kb + h * stride_kh
    v_ptr += b * stride_vb + h * stride_vh
    to_base_2 = scale * 1.4426950408889634
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    for iteration in range(tl.cdiv(N, BLOCK_N)):
        keys = iteration * BLOCK_N + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + keys[:, None] * stride_kn + d[None, :] * stride_kd, mask=keys[:, None] < N, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * stride_vn + d[None, :] * stride_vd, mask=keys[:, None] < N, other=0.0)
        p = tl.exp2(tl.dot(q, tl.trans(k)) * to_base_2 - lse[:, None])
        p = tl.where(keys[None, :] < N, p, 0.0)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + places, dq * scale, mask=rows[:, None] < M)


def attention_backward(q, k, v, o, lse, do):
    """q, do: [B, H, M, D], k, v: [B, H, N, D], fp16 or bf16, any strides; o, lse: as exercise 25 returns them.

    Returns dq, dk, dv, contiguous, with the shapes of q, k and v and their dtype. In fp32 and for a head:
    P = exp(q k^T / sqrt(D) - lse), delta = sum of o do in each row, dS = P (do v^T - delta),
    dv = P^T do, dk = dS^T q / sqrt(D), dq = dS k / sqrt(D).
    """
    B, H, M, D = q.shape
    N = k.shape[2]
    dq = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    dk = torch.empty((B, H, N, D), dtype=q.dtype, device=q.device)
    dv = torch.empty((B, H, N, D), dtype=q.dtype, device=q.device)
    delta = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    of_queries, of_keys = (triton.cdiv(M, BLOCK_M), B * H), (triton.cdiv(N, BLOCK_N), B * H)
    strides = *q.stride(), *k.stride(), *v.stride(), *do.stride()
    attention_dq_kernel[of_queries](
        q, k, v, o, do, lse, delta, dq, D**-0.5, H, M, N, *strides,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=3,
    )  # fmt: skip
    attention_dkdv_kernel[of_keys](
        q, k, v, do, lse, delta, dk, dv, D**-0.5, H, M, N, *strides,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=1,
    )  # fmt: skip
    return dq, dk, dv
