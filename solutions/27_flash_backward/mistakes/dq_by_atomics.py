"""Wrong: dq is added up by atomics in the loop over queries, in fp32, and rounded by a launch of its own.

Five products in place of seven, and faster; but programs come in any order, and the last bits of dq with them.

Finding: race

Rejected with: Programs add floats to what others have added, by atomics
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 64  # queries of a tile
BLOCK_N = 64  # keys of a tile


@triton.jit
def attention_delta_kernel(
    o_ptr, do_ptr, delta_ptr, H, M, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    # Program (i, j): delta of tile i of BLOCK_M queries of head j; o and delta are contiguous. About 7 lines.
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    rows, d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    places = (tl.program_id(1) * M + rows[:, None]) * D + d[None, :]
    o = tl.load(o_ptr + places, mask=rows[:, None] < M)
    do_ptrs = do_ptr + b * stride_dob + h * stride_doh + rows[:, None] * stride_dom + d[None, :] * stride_dod
    do = tl.load(do_ptrs, mask=rows[:, None] < M)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)  # in fp32: dP - delta is small beside both
    tl.store(delta_ptr + tl.program_id(1) * M + rows, delta, mask=rows < M)


@triton.jit
def attention_dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program (i, j) owns tile i of BLOCK_N keys of head j and loops over the queries. About 30 lines.
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    keys, d = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, D)
    k_ptrs = k_ptr + b * stride_kb + h * stride_kh + keys[:, None] * stride_kn + d[None, :] * stride_kd
    k = tl.load(k_ptrs, mask=keys[:, None] < N, other=0.0)
    v_ptrs = v_ptr + b * stride_vb + h * stride_vh + keys[:, None] * stride_vn + d[None, :] * stride_vd
    v = tl.load(v_ptrs, mask=keys[:, None] < N, other=0.0)
    q_ptr += b * stride_qb + h * stride_qh
    do_ptr += b * stride_dob + h * stride_doh
    lse_ptr += tl.program_id(1) * M
    delta_ptr += tl.program_id(1) * M
    to_base_2 = scale * 1.4426950408889634  # exp(s - lse) is exp2((s - lse) * log2(e))
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        # A query of zeros past the end has P = 1, and adds 1 * 0 to dv and 1 * (0 - 0) * 0 to dk.
        q = tl.load(q_ptr + rows[:, None] * stride_qm + d[None, :] * stride_qd, mask=rows[:, None] < M, other=0.0)
        do = tl.load(do_ptr + rows[:, None] * stride_dom + d[None, :] * stride_dod, mask=rows[:, None] < M, other=0.0)
        lse = tl.load(lse_ptr + rows, mask=rows < M, other=0.0) * 1.4426950408889634
        delta = tl.load(delta_ptr + rows, mask=rows < M, other=0.0)
        # Tiles of a key per row: P and dS come out turned, as both sums over the queries want them.
        p = tl.exp2(tl.dot(k, tl.trans(q)) * to_base_2 - lse[None, :])
        p = tl.where(keys[:, None] < N, p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = p * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
        places = (tl.program_id(1) * M + rows[:, None]) * D + d[None, :]
        share = tl.dot(tl.trans(ds).to(k.dtype), k) * scale
        tl.atomic_add(dq_ptr + places, share, mask=rows[:, None] < M, sem="relaxed")
    places = (tl.program_id(1) * N + keys[:, None]) * D + d[None, :]
    tl.store(dk_ptr + places, dk * scale, mask=keys[:, None] < N)
    tl.store(dv_ptr + places, dv, mask=keys[:, None] < N)


@triton.jit
def attention_rounded_kernel(sum_ptr, dq_ptr, SIZE, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dq_ptr + places, tl.load(sum_ptr + places, mask=places < SIZE), mask=places < SIZE)


def attention_backward(q, k, v, o, lse, do):
    """q, do: [B, H, M, D], k, v: [B, H, N, D], fp16 or bf16, any strides; o, lse: as exercise 25 returns them.

    Returns dq, dk, dv, contiguous, with the shapes of q, k and v and their dtype. In fp32 and for a head:
    P = exp(q k^T / sqrt(D) - lse), delta = sum of o do in each row, dS = P (do v^T - delta),
    dv = P^T do, dk = dS^T q / sqrt(D), dq = dS k / sqrt(D).
    """
    # Make room for the results and for delta, launch three kernels, return dq, dk, dv: about 20 lines.
    B, H, M, D = q.shape
    N = k.shape[2]
    dq = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    added = torch.zeros((B, H, M, D), dtype=torch.float32, device=q.device)
    dk = torch.empty((B, H, N, D), dtype=q.dtype, device=q.device)
    dv = torch.empty((B, H, N, D), dtype=q.dtype, device=q.device)
    delta = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    of_queries, of_keys = (triton.cdiv(M, BLOCK_M), B * H), (triton.cdiv(N, BLOCK_N), B * H)
    strides = *q.stride(), *k.stride(), *v.stride(), *do.stride()
    attention_delta_kernel[of_queries](o, do, delta, H, M, *do.stride(), D=D, BLOCK_M=BLOCK_M, num_warps=4)
    attention_dkdv_kernel[of_keys](
        q, k, v, do, lse, delta, added, dk, dv, D**-0.5, H, M, N, *strides,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=1,
    )  # fmt: skip
    size = dq.numel()
    attention_rounded_kernel[(triton.cdiv(size, 1024),)](added, dq, size, BLOCK=1024)
    return dq, dk, dv
