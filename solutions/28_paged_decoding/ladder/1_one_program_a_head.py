"""28, rung 1: a program for each query head loops over all keys of its sequence, as in 13 and 25.

What: it divides at the end, and no second launch is needed.
Why: 128 programs are one for each multiprocessor at most, heads of a group read the same keys each for themselves, and
products by sums make each key wait for an addition along D.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 32


@triton.jit
def paged_attention_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, o_ptr, scale, H,
    stride_qb, stride_qh, stride_qd, stride_kp, stride_kr, stride_kh, stride_kd,
    stride_vp, stride_vr, stride_vh, stride_vd, stride_tb, stride_tt, stride_n,
    PAGE: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h, d = tl.program_id(0) // H, tl.program_id(0) % H, tl.arange(0, D)
    q = tl.load(q_ptr + b * stride_qb + h * stride_qh + d * stride_qd).to(tl.float32) * scale
    k_ptr += h // GROUP * stride_kh
    v_ptr += h // GROUP * stride_vh
    length = tl.load(lengths_ptr + b * stride_n)
    greatest, total, acc = -float("inf"), 0.0, tl.zeros((D,), tl.float32)
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        valid = n < length
        page = tl.load(table_ptr + b * stride_tb + n // PAGE * stride_tt, mask=valid, other=0).to(tl.int64)
        row = n % PAGE
        k_rows, v_rows = page * stride_kp + row * stride_kr, page * stride_vp + row * stride_vr
        k = tl.load(k_ptr + k_rows[:, None] + d[None, :] * stride_kd, mask=valid[:, None], other=0.0)
        v = tl.load(v_ptr + v_rows[:, None] + d[None, :] * stride_vd, mask=valid[:, None], other=0.0)
        s = tl.where(valid, tl.sum(q[None, :] * k.to(tl.float32), 1), -float("inf"))
        larger = tl.maximum(greatest, tl.max(s, 0))
        p = tl.exp(s - larger)
        factor = tl.exp(greatest - larger)
        total = total * factor + tl.sum(p, 0)
        acc = acc * factor + tl.sum(p[:, None] * v.to(tl.float32), 0)
        greatest = larger
    tl.store(o_ptr + tl.program_id(0) * D + d, acc / tl.where(total == 0.0, 1.0, total))


def paged_attention(q, k_cache, v_cache, block_table, lengths):
    B, H, D = q.shape
    page, HK = k_cache.shape[1:3]
    o = torch.empty((B, H, D), dtype=q.dtype, device=q.device)
    paged_attention_kernel[(B * H,)](
        q, k_cache, v_cache, block_table, lengths, o, D**-0.5, H,
        *q.stride(), *k_cache.stride(), *v_cache.stride(), *block_table.stride(), *lengths.stride(),
        PAGE=page, GROUP=H // HK, D=D, BLOCK_N=BLOCK_N, num_stages=1,
    )  # fmt: skip
    return o
