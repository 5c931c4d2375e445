"""Right: the maximum starts at a number that no score reaches, so that nothing infinite is ever subtracted from itself.

Hidden keys have -inf: exp of that less anything finite is 0. None goes into the kernel as it is: Triton compiles one
kernel for it and another for a number. Longest tiles start first, and there are fewer queries in a tile than keys.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

BLOCK_M = 32
BLOCK_N = 64


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, softcap, window, H, HK, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows[:, None] < M, other=0.0)
    group = H // HK
    at = rows[:, None] + N - M
    m = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    begin = first * 0
    if window is not None:
        begin = tl.maximum(first + N - M - window + 1, 0) // BLOCK_N
    for tile in range(begin, tl.cdiv(tl.maximum(tl.minimum(first + BLOCK_M + N - M, N), 0), BLOCK_N)):
        keys = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + b * stride_kb + h // group * stride_kh + keys[None, :] * stride_kn + d[:, None] * stride_kd
        v_ptrs = v_ptr + b * stride_vb + h // group * stride_vh + keys[:, None] * stride_vn + d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=keys[None, :] < N)  # no `other`: scores of such lanes are replaced
        v = tl.load(v_ptrs, mask=keys[:, None] < N, other=0.0)
        s = tl.dot(q, k) * scale
        if softcap is not None:
            s = softcap * libdevice.tanh(s / softcap)
        s = tl.where(keys[None, :] <= at, s, -float("inf"))
        if window is not None:
            s = tl.where(keys[None, :] + window > at, s, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        factor = tl.exp(m - new)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
        m = new
    row = tl.program_id(1) * M + rows
    o = acc / tl.maximum(total, 1e-30)[:, None]
    tl.store(o_ptr + row[:, None] * D + d[None, :], o, mask=rows[:, None] < M)
    tl.store(lse_ptr + row, m + tl.log(total), mask=rows < M)


def attention(q, k, v, window=None, softcap=None):
    B, H, M, D = q.shape
    HK, N = k.shape[1], k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    attention_kernel[(triton.cdiv(M, BLOCK_M), B * H)](
        q, k, v, o, lse, D**-0.5, softcap, window, H, HK, M, N, *q.stride(), *k.stride(), *v.stride(),
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=2,
    )  # fmt: skip
    return o, lse
