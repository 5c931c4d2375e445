"""31, rung 1: a product that stores all logits, and a launch that reads them again.

What: the tiles of 05, then one pass over each row as in 18; the logits between them are in fp32.

Why it is no answer: both kernels are good ones, but 8 bytes cross memory for each logit, and M times V of them have to
be kept.
"""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_V, BLOCK_K = 128, 256, 64
GROUP_M = 8
BLOCK = 4096  # columns that a row is read by


@triton.jit
def linear_cross_entropy_logits_kernel(
    x_ptr, weight_ptr, logits_ptr, M, V, K, stride_xm, stride_xk, stride_wv, stride_wk,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid, tiles_m = tl.program_id(0), tl.cdiv(M, BLOCK_M)
    in_group = GROUP_M * tl.cdiv(V, BLOCK_V)
    first_m = pid // in_group * GROUP_M
    group = min(tiles_m - first_m, GROUP_M)
    rows = (first_m + pid % in_group % group) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid % in_group // group * BLOCK_V + tl.arange(0, BLOCK_V)
    k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * stride_xm + k[None, :] * stride_xk
    w_ptrs = weight_ptr + cols[None, :] * stride_wv + k[:, None] * stride_wk
    logits = tl.zeros((BLOCK_M, BLOCK_V), tl.float32)
    for begin in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=(rows[:, None] < M) & (begin + k[None, :] < K), other=0.0)
        w = tl.load(w_ptrs, mask=(begin + k[:, None] < K) & (cols[None, :] < V), other=0.0)
        logits = tl.dot(x, w, logits)
        x_ptrs += BLOCK_K * stride_xk
        w_ptrs += BLOCK_K * stride_wk
    ptrs = logits_ptr + rows[:, None].to(tl.int64) * V + cols[None, :]
    tl.store(ptrs, logits, mask=(rows[:, None] < M) & (cols[None, :] < V))


@triton.jit
def linear_cross_entropy_rows_kernel(
    logits_ptr, target_ptr, loss_ptr, lse_ptr, V, smoothing, z_loss, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    greatest = -float("inf")
    total = 0.0
    picked = 0.0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        logits = tl.load(logits_ptr + row * V + cols, mask=cols < V, other=-float("inf"))
        wanted = tl.where(cols == target, 1.0 - smoothing, 0.0) + smoothing / V
        picked += tl.sum(tl.where(cols < V, wanted * logits, 0.0), 0)
        before = greatest
        greatest = tl.maximum(before, tl.max(logits, 0))
        total = total * tl.exp(before - greatest) + tl.sum(tl.exp(logits - greatest), 0)
    lse = greatest + tl.log(total)
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, tl.where(target != -100, lse - picked + z_loss * lse * lse, 0.0))


def linear_cross_entropy(x, weight, target, label_smoothing, z_loss):
    (M, K), V = x.shape, weight.shape[0]
    loss = torch.empty((M,), dtype=torch.float32, device=x.device)
    lse = torch.empty((M,), dtype=torch.float32, device=x.device)
    logits = torch.empty((M, V), dtype=torch.float32, device=x.device)
    linear_cross_entropy_logits_kernel[(triton.cdiv(M, BLOCK_M) * triton.cdiv(V, BLOCK_V),)](
        x, weight, logits, M, V, K, *x.stride(), *weight.stride(),
        BLOCK_M=BLOCK_M, BLOCK_V=BLOCK_V, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, num_warps=8, num_stages=3,
    )  # fmt: skip
    linear_cross_entropy_rows_kernel[(M,)](
        logits, target, loss, lse, V, label_smoothing, z_loss, BLOCK=BLOCK, num_warps=8
    )
    return loss, lse
