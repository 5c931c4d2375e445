"""26 · Causal attention: a rule says which keys a query sees, and the loop leaves out the tiles that nobody sees."""

import torch
import triton
import triton.language as tl

BLOCK_M = 64  # queries of one program
BLOCK_N = 64  # keys of one iteration


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, softcap, window, H, HK, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_ob, stride_oh, stride_om, stride_od,
    HAS_WINDOW: tl.constexpr, HAS_CAP: tl.constexpr,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program (i, j) makes tile i of BLOCK_M queries of head j, which is head j % H of batch j // H; lse is contiguous.
    # About 40 lines.
    ### BEGIN SOLUTION
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M  # the longest loops start first
    rows = first + tl.arange(0, BLOCK_M)
    at = rows + N - M  # the position of each query: it sees the keys up to there, and the last query sees all
    d = tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows[:, None] < M)  # no `other`: rows never meet, and these are not stored
    k_ptr += b * stride_kb + h // (H // HK) * stride_kh  # neighbours among the heads share their keys and values
    v_ptr += b * stride_vb + h // (H // HK) * stride_vh
    greatest = tl.full((BLOCK_M,), -float("inf"), tl.float32)  # m: of the scores so far, in base 2
    total = tl.zeros((BLOCK_M,), tl.float32)  # l: of the powers of two so far
    acc = tl.zeros((BLOCK_M, D), tl.float32)  # the same powers of two, times v
    begin, end = 0, tl.minimum(first + BLOCK_M + N - M, N)  # behind the last key that the last query sees
    if HAS_WINDOW:
        # The tile of the first key that the first query sees. Below 0, // would round up.
        begin = tl.maximum(first + N - M - window + 1, 0) // BLOCK_N * BLOCK_N
    for start in range(begin, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + keys[None, :] * stride_kn + d[:, None] * stride_kd, mask=keys[None, :] < N, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * stride_vn + d[None, :] * stride_vd, mask=keys[:, None] < N, other=0.0)
        s = tl.dot(q, k) * scale
        if HAS_CAP:
            s = softcap * (1 - 2 / (tl.exp(s * (2 / softcap)) + 1))  # tanh; exp may be 0 or inf, and both are right
        seen = keys[None, :] <= at[:, None]  # keys past N too are hidden: no query stands there
        if HAS_WINDOW:
            seen &= keys[None, :] > at[:, None] - window
        s = tl.where(seen, s * 1.4426950408889634, -float("inf"))  # log2(e): exp(s) is exp2(s * log2(e))
        larger = tl.maximum(greatest, tl.max(s, 1))
        # A row that has seen nothing yet has no maximum, and (-inf) - (-inf) is NaN: 0 will do, p is 0 then.
        shift = tl.where(larger == -float("inf"), 0.0, larger)
        p = tl.exp2(s - shift[:, None])
        factor = tl.exp2(greatest - shift)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
        greatest = larger
    o_ptrs = o_ptr + b * stride_ob + h * stride_oh + rows[:, None] * stride_om + d[None, :] * stride_od
    o = acc / tl.where(total == 0, 1.0, total)[:, None]  # a row that sees nothing: 0 / 1
    tl.store(o_ptrs, o, mask=rows[:, None] < M)
    lse = (greatest + tl.log2(total)) * 0.6931471805599453  # ln(2): back to base e; of nothing it is -inf
    tl.store(lse_ptr + tl.program_id(1) * M + rows, lse, mask=rows < M)
    ### END SOLUTION


def attention(q, k, v, window=None, softcap=None):
    """q: [B, H, M, D], k, v: [B, HK, N, D], fp16 or bf16, any strides; HK divides H; D is 16, 32, 64 or 128.

    Query i sees key j where j <= i + N - M, and j > i + N - M - window. softcap: scores are softcap tanh(s / softcap).
    Returns o, [B, H, M, D] contiguous, dtype of q, and lse, [B, H, M] fp32; 0 and -inf where nothing is seen.
    """
    # Make room for o and lse, choose grid and warps, launch once, return both: about 12 lines.
    ### BEGIN SOLUTION
    B, H, M, D = q.shape
    HK, N = k.shape[1], k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(M, BLOCK_M), B * H)  # tiles of one head are neighbours: they share its k and v in the cache
    attention_kernel[grid](
        q, k, v, o, lse, D**-0.5, softcap or 1.0, window or N, H, HK, M, N,
        *q.stride(), *k.stride(), *v.stride(), *o.stride(),
        HAS_WINDOW=window is not None, HAS_CAP=softcap is not None,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=3,
    )  # fmt: skip
    return o, lse
    ### END SOLUTION
