"""Right: each part is divided already and kept with its log-sum-exp: one number fewer than m, l and acc."""

import torch
import triton
import triton.language as tl

BLOCK_N = 64  # keys of one iteration
SPLITS = 16  # programs that share the keys of one sequence


@triton.jit
def paged_attention_partial_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, lse_ptr, part_ptr, scale, HK,
    stride_qb, stride_qh, stride_qd, stride_kp, stride_kr, stride_kh, stride_kd,
    stride_vp, stride_vr, stride_vh, stride_vd, stride_tb, stride_tt, stride_n,
    PAGE, GROUP: tl.constexpr, D: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    # Program (i, split) has head i % HK of the cache and sequence i // HK: its GROUP queries are rows of one tile. It
    # leaves the log-sum-exp of its keys, in base 2, and their softmax times v.
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
        s = tl.where(valid[None, :], tl.dot(q, k) * to_base_2, -float("inf"))
        larger = tl.maximum(greatest, tl.max(s, 1))
        p = tl.exp2(s - larger[:, None])
        factor = tl.exp2(greatest - larger)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
        greatest = larger
    part = ((b * HK + hk) * GROUP + h) * SPLITS + split
    some = total > 0.0
    divisor = tl.where(some, total, 1.0)
    tl.store(lse_ptr + part, tl.where(some, greatest + tl.log2(divisor), -float("inf")), mask=h < GROUP)
    tl.store(part_ptr + part[:, None] * D + d[None, :], acc / divisor[:, None], mask=h[:, None] < GROUP)


@triton.jit
def paged_attention_combine_kernel(
    lse_ptr, part_ptr, o_ptr, D: tl.constexpr, SPLITS: tl.constexpr, BLOCK_S: tl.constexpr
):
    # Program i joins the SPLITS parts of one query head of one sequence; BLOCK_S >= SPLITS. About 12 lines.
    i, s, d = tl.program_id(0), tl.arange(0, BLOCK_S), tl.arange(0, D)
    part = i * SPLITS + s
    lse = tl.load(lse_ptr + part, mask=s < SPLITS, other=-float("inf"))
    mine = tl.load(part_ptr + part[:, None] * D + d[None, :], mask=s[:, None] < SPLITS, other=0.0)
    top = tl.max(lse, 0)
    # A sequence without a key: (-inf) - (-inf) would be NaN, and 2 to the power of -inf - 0 is the 0 that it has to be.
    weight = tl.exp2(lse - tl.where(top == -float("inf"), 0.0, top))
    whole = tl.sum(weight, 0)
    o = tl.sum(weight[:, None] * mine, 0) / tl.where(whole == 0.0, 1.0, whole)
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
    o = torch.empty((B, H, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, SPLITS), dtype=torch.float32, device=q.device)
    parts = torch.empty((B, H, SPLITS, D), dtype=torch.float32, device=q.device)
    # The lengths stay on the GPU: to read one here, the host would have to wait for all that was launched before.
    paged_attention_partial_kernel[(B * HK, SPLITS)](
        q, k_cache, v_cache, block_table, lengths, lse, parts, D**-0.5, HK,
        *q.stride(), *k_cache.stride(), *v_cache.stride(), *block_table.stride(), *lengths.stride(),
        PAGE=page, GROUP=group, D=D, BLOCK_H=max(16, triton.next_power_of_2(group)), BLOCK_N=BLOCK_N, SPLITS=SPLITS,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    paged_attention_combine_kernel[(B * H,)](lse, parts, o, D=D, SPLITS=SPLITS, BLOCK_S=triton.next_power_of_2(SPLITS))
    return o
