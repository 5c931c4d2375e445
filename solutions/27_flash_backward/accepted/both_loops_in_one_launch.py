"""Right: as the official tutorial has it: a program owns a tile of keys and the tile of queries of the same number.

It loops over the queries first, for dk and dv, then over the keys, for dq; what an iteration takes is smaller than the
tile that is owned. Unlike the tutorial's the scale is not rounded into k, and sizes need not be multiples of a block.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 32  # of an iteration, in both loops
BLOCK_N = 64  # that a program owns, of keys and of queries
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def tile(ptr, rows, stride_row, d, stride_d, size):
    return tl.load(ptr + rows[:, None] * stride_row + d[None, :] * stride_d, mask=rows[:, None] < size, other=0.0)


@triton.jit
def attention_delta_kernel(o_ptr, do_ptr, delta_ptr, H, M, sb, sh, sm, sd, D: tl.constexpr, ROWS: tl.constexpr):
    head = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    o = tile(o_ptr + head * M * D, rows, D, d, 1, M).to(tl.float32)
    do = tile(do_ptr + head // H * sb + head % H * sh, rows, sm, d, sd, M).to(tl.float32)
    tl.store(delta_ptr + head * M + rows, tl.sum(o * do, axis=1), mask=rows < M)


@triton.jit
def attention_loops_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, STEP: tl.constexpr, OWN: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    b, h = head // H, head % H
    q_ptr += b * stride_qb + h * stride_qh
    k_ptr += b * stride_kb + h * stride_kh
    v_ptr += b * stride_vb + h * stride_vh
    do_ptr += b * stride_dob + h * stride_doh
    lse_ptr += head * M
    delta_ptr += head * M
    own, d = tl.program_id(0) * OWN + tl.arange(0, OWN), tl.arange(0, D)
    places = own[:, None] * D + d[None, :]

    if tl.program_id(0) * OWN < N:
        k, v = tile(k_ptr, own, stride_kn, d, stride_kd, N), tile(v_ptr, own, stride_vn, d, stride_vd, N)
        dk, dv = tl.zeros((OWN, D), tl.float32), tl.zeros((OWN, D), tl.float32)
        for start in range(0, M, STEP):
            at = start + tl.arange(0, STEP)
            q, do = tile(q_ptr, at, stride_qm, d, stride_qd, M), tile(do_ptr, at, stride_dom, d, stride_dod, M)
            lse = tl.load(lse_ptr + at, mask=at < M, other=float("inf"))
            delta = tl.load(delta_ptr + at, mask=at < M, other=0.0)
            pt = tl.exp2(tl.dot(k, tl.trans(q)) * (scale * LOG2_E) - lse[None, :] * LOG2_E)
            dv += tl.dot(pt.to(do.dtype), do)
            dst = pt * (tl.dot(v, tl.trans(do)) - delta[None, :])
            dk += tl.dot(dst.to(q.dtype), q)
        tl.store(dk_ptr + head * N * D + places, dk * scale, mask=own[:, None] < N)
        tl.store(dv_ptr + head * N * D + places, dv, mask=own[:, None] < N)

    if tl.program_id(0) * OWN < M:
        q, do = tile(q_ptr, own, stride_qm, d, stride_qd, M), tile(do_ptr, own, stride_dom, d, stride_dod, M)
        lse = tl.load(lse_ptr + own, mask=own < M, other=0.0)
        delta = tl.load(delta_ptr + own, mask=own < M, other=0.0)
        dq = tl.zeros((OWN, D), tl.float32)
        for start in range(0, N, STEP):
            at = start + tl.arange(0, STEP)
            k, v = tile(k_ptr, at, stride_kn, d, stride_kd, N), tile(v_ptr, at, stride_vn, d, stride_vd, N)
            p = tl.exp2((tl.dot(q, tl.trans(k)) * scale - lse[:, None]) * LOG2_E)
            p = tl.where(at[None, :] < N, p, 0.0)
            ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
            dq += tl.dot(ds.to(k.dtype), k)
        tl.store(dq_ptr + head * M * D + places, dq * scale, mask=own[:, None] < M)


def attention_backward(q, k, v, o, lse, do):
    B, H, M, D = q.shape
    N = k.shape[2]
    dq = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    dk, dv = (torch.empty((B, H, N, D), dtype=q.dtype, device=q.device) for _ in range(2))
    delta = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    attention_delta_kernel[(triton.cdiv(M, BLOCK_N), B * H)](o, do, delta, H, M, *do.stride(), D=D, ROWS=BLOCK_N)
    grid = (triton.cdiv(max(M, N), BLOCK_N), B * H)
    attention_loops_kernel[grid](
        q, k, v, do, lse, delta, dq, dk, dv, D**-0.5, H, M, N,
        *q.stride(), *k.stride(), *v.stride(), *do.stride(), D=D, STEP=BLOCK_M, OWN=BLOCK_N, num_warps=8, num_stages=1,
    )  # fmt: skip
    return dq, dk, dv
