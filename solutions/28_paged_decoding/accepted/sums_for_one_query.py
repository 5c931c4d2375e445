"""Right: where a head of the caches has one query, scores are sums, and so is p v: a product would waste 15 rows."""

import torch
import triton
import triton.language as tl

BLOCK_N = 64  # keys of one iteration
SPLITS = 16  # programs that share the keys of one sequence


@triton.jit
def paged_attention_partial_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, m_ptr, l_ptr, acc_ptr, scale, HK,
    stride_qb, stride_qh, stride_qd, stride_kp, stride_kr, stride_kh, stride_kd,
    stride_vp, stride_vr, stride_vh, stride_vd, stride_tb, stride_tt, stride_n,
    PAGE, GROUP: tl.constexpr, D: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    # Program (i, split) has head i % HK of the cache and sequence i // HK: its GROUP queries are rows of one tile. It
    # leaves m, l and acc of its keys for each of them, those of split s of query head j at (b * H + j) * SPLITS + s.
    # About 33 lines.
    b, hk, split = tl.program_id(0) // HK, tl.program_id(0) % HK, tl.program_id(1)
    h, d = tl.arange(0, BLOCK_H), tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + (hk * GROUP + h[:, None]) * stride_qh + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=h[:, None] < GROUP, other=0.0)  # these rows are not stored either
    k_ptr += hk * stride_kh
    v_ptr += hk * stride_vh
    length = tl.load(lengths_ptr + b * stride_n)
    # Whole blocks to each split; the last ones that have any may get fewer, and others none.
    share = tl.cdiv(tl.cdiv(length, BLOCK_N), SPLITS) * BLOCK_N
    first = split * share
    end = tl.minimum(first + share, length)
    to_base_2 = scale * 1.4426950408889634
    greatest = tl.full((BLOCK_H,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_H,), tl.float32)
    acc = tl.zeros((BLOCK_H, D), tl.float32)
    for start in range(first, end, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        valid = n < end
        # The key's number, not its place in the block, tells page and row; 64 bits before anything is multiplied.
        page = tl.load(table_ptr + b * stride_tb + n // PAGE * stride_tt, mask=valid, other=0).to(tl.int64)
        row = n % PAGE
        k_ptrs = k_ptr + (page * stride_kp + row * stride_kr)[None, :] + d[:, None] * stride_kd
        v_ptrs = v_ptr + (page * stride_vp + row * stride_vr)[:, None] + d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=valid[None, :], other=0.0)
        v = tl.load(v_ptrs, mask=valid[:, None], other=0.0)  # rows past the end may hold NaN, and 0 * NaN is NaN
        scores = tl.dot(q, k) if GROUP > 1 else tl.sum(tl.trans(q).to(tl.float32) * k.to(tl.float32), 0)[None, :]
        s = tl.where(valid[None, :], scores * to_base_2, -float("inf"))
        larger = tl.maximum(greatest, tl.max(s, 1))
        p = tl.exp2(s - larger[:, None])
        factor = tl.exp2(greatest - larger)
        total = total * factor + tl.sum(p, 1)
        if GROUP == 1:
            acc = acc * factor[:, None] + tl.sum(tl.trans(p) * v.to(tl.float32), 0)[None, :]
        else:
            acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
        greatest = larger
    # Without an iteration this is (-inf, 0, 0), the part that adds nothing: the second launch reads it all the same.
    part = ((b * HK + hk) * GROUP + h) * SPLITS + split
    tl.store(m_ptr + part, greatest, mask=h < GROUP)
    tl.store(l_ptr + part, total, mask=h < GROUP)
    tl.store(acc_ptr + part[:, None] * D + d[None, :], acc, mask=h[:, None] < GROUP)


@triton.jit
def paged_attention_combine_kernel(
    m_ptr, l_ptr, acc_ptr, o_ptr, D: tl.constexpr, SPLITS: tl.constexpr, BLOCK_S: tl.constexpr
):
    # Program i joins the SPLITS parts of one query head of one sequence; BLOCK_S >= SPLITS. About 12 lines.
    i, s, d = tl.program_id(0), tl.arange(0, BLOCK_S), tl.arange(0, D)
    part = i * SPLITS + s
    m = tl.load(m_ptr + part, mask=s < SPLITS, other=-float("inf"))
    total = tl.load(l_ptr + part, mask=s < SPLITS, other=0.0)
    acc = tl.load(acc_ptr + part[:, None] * D + d[None, :], mask=s[:, None] < SPLITS, other=0.0)
    top = tl.max(m, 0)
    # A sequence without a key: (-inf) - (-inf) would be NaN, and 2 to the power of -inf - 0 is the 0 that it has to be.
    weight = tl.exp2(m - tl.where(top == -float("inf"), 0.0, top))
    whole = tl.sum(weight * total, 0)
    o = tl.sum(weight[:, None] * acc, 0) / tl.where(whole == 0.0, 1.0, whole)
    tl.store(o_ptr + i * D + d, o)


def paged_attention(q, k_cache, v_cache, block_table, lengths):
    """q: [B, H, D], k_cache, v_cache: [P, page, HK, D], fp16 or bf16; block_table: [B, T], lengths: [B], int32.

    Key j of sequence b is row j % page of page block_table[b, j // page]; head h has head h // (H / HK) of the caches.
    Returns o, [B, H, D] contiguous, dtype of q: softmax(q k^T / sqrt(D)) v of each sequence; 0 where it has no key.
    """
    # Make room for o and for the parts in fp32, launch both kernels, return o: about 18 lines.
    B, H, D = q.shape
    page, HK = k_cache.shape[1:3]
    group = H // HK
    rows = 1 if group == 1 else max(16, triton.next_power_of_2(group))
    o = torch.empty((B, H, D), dtype=q.dtype, device=q.device)
    m = torch.empty((B, H, SPLITS), dtype=torch.float32, device=q.device)
    total = torch.empty((B, H, SPLITS), dtype=torch.float32, device=q.device)
    acc = torch.empty((B, H, SPLITS, D), dtype=torch.float32, device=q.device)
    # The lengths stay on the GPU: to read one here, the host would have to wait for all that was launched before.
    paged_attention_partial_kernel[(B * HK, SPLITS)](
        q, k_cache, v_cache, block_table, lengths, m, total, acc, D**-0.5, HK,
        *q.stride(), *k_cache.stride(), *v_cache.stride(), *block_table.stride(), *lengths.stride(),
        PAGE=page, GROUP=group, D=D, BLOCK_H=rows, BLOCK_N=BLOCK_N, SPLITS=SPLITS,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    paged_attention_combine_kernel[(B * H,)](
        m, total, acc, o, D=D, SPLITS=SPLITS, BLOCK_S=triton.next_power_of_2(SPLITS)
    )
    return o
