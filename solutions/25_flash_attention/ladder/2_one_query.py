"""25, rung 2: one query per program, products by sums.

What: a program goes through the keys of its head, 64 at a time, with the maximum, l and acc of one query.
Why it is slow: nothing of size M x N is in memory any more, but every program reads all of k and v of its head, and
its sums of products run on no tensor core.
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 64  # keys of one iteration


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    D: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    b, h = head // H, head % H
    d = tl.arange(0, D)
    q = tl.load(q_ptr + b * stride_qb + h * stride_qh + row * stride_qm + d * stride_qd).to(tl.float32) * scale
    greatest = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        there = keys[:, None] < N
        k_ptrs = k_ptr + b * stride_kb + h * stride_kh + keys[:, None] * stride_kn + d[None, :] * stride_kd
        v_ptrs = v_ptr + b * stride_vb + h * stride_vh + keys[:, None] * stride_vn + d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=there, other=0.0).to(tl.float32)
        v = tl.load(v_ptrs, mask=there, other=0.0).to(tl.float32)
        s = tl.where(keys < N, tl.sum(q[None, :] * k, 1), -float("inf"))
        larger = tl.maximum(greatest, tl.max(s, 0))
        p = tl.exp(s - larger)
        factor = tl.exp(greatest - larger)
        total = total * factor + tl.sum(p, 0)
        acc = acc * factor + tl.sum(p[:, None] * v, 0)
        greatest = larger
    at = head * M + row
    tl.store(o_ptr + at * D + d, acc / total)
    tl.store(lse_ptr + at, greatest + tl.log(total))


def attention(q, k, v):
    B, H, M, D = q.shape
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    attention_kernel[(M, B * H)](
        q, k, v, o, lse, D**-0.5, H, M, k.shape[2], *q.stride(), *k.stride(), *v.stride(),
        D=D, BLOCK_N=BLOCK_N, num_warps=4,
    )  # fmt: skip
    return o, lse
