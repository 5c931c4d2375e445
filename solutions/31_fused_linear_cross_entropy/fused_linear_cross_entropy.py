"""31 · Fused linear cross entropy: the loss of x @ weight.T, whose logits are never in memory."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_V, BLOCK_K = 128, 256, 64  # one tile of logits, and the step along K
SPLITS = 4  # programs that share the vocabulary of one tile of rows


@triton.jit
def linear_cross_entropy_partial_kernel(
    x_ptr, weight_ptr, target_ptr, m_ptr, s_ptr, picked_ptr, M, V, K, smoothing,
    stride_xm, stride_xk, stride_wv, stride_wk,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    # Program (i, split) has row tile i and a share of the vocabulary. It leaves three numbers of each row in scratch,
    # those of row r at split * M + r: about 33 lines.
    ### BEGIN SOLUTION
    rows, split = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.program_id(1)
    k = tl.arange(0, BLOCK_K)
    target = tl.load(target_ptr + rows, mask=rows < M, other=-100)
    # The target's distribution: on one column the one, on all V columns a share of what smoothing takes from it.
    one, share_of_all = 1.0 - smoothing, smoothing / V
    # Whole blocks to each split; the last one that has any may get fewer, and those behind it none.
    share = tl.cdiv(tl.cdiv(V, BLOCK_V), SPLITS) * BLOCK_V
    first = split * share
    end = tl.minimum(first + share, V)
    greatest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(first, end, BLOCK_V):
        cols = start + tl.arange(0, BLOCK_V)
        x_ptrs = x_ptr + rows[:, None] * stride_xm + k[None, :] * stride_xk
        w_ptrs = weight_ptr + cols[None, :] * stride_wv + k[:, None] * stride_wk
        logits = tl.zeros((BLOCK_M, BLOCK_V), tl.float32)
        for begin in range(0, K, BLOCK_K):
            x = tl.load(x_ptrs, mask=(rows[:, None] < M) & (begin + k[None, :] < K), other=0.0)
            w = tl.load(w_ptrs, mask=(begin + k[:, None] < K) & (cols[None, :] < V), other=0.0)
            logits = tl.dot(x, w, logits)
            x_ptrs += BLOCK_K * stride_xk
            w_ptrs += BLOCK_K * stride_wk
        # A column past the end is 0 here: it adds nothing.
        wanted = tl.where(cols[None, :] == target[:, None], one, 0.0) + share_of_all
        picked += tl.sum(wanted * logits, 1)
        logits = tl.where(cols[None, :] < V, logits, -float("inf"))  # but exp(0) would add 1
        larger = tl.maximum(greatest, tl.max(logits, 1))
        total = total * tl.exp(greatest - larger) + tl.sum(tl.exp(logits - larger[:, None]), 1)
        greatest = larger
    # Without an iteration this is (-inf, 0, 0), the part that adds nothing: the second launch reads it all the same.
    part = split * M + rows
    tl.store(m_ptr + part, greatest, mask=rows < M)
    tl.store(s_ptr + part, total, mask=rows < M)
    tl.store(picked_ptr + part, picked, mask=rows < M)
    ### END SOLUTION


@triton.jit
def linear_cross_entropy_combine_kernel(
    m_ptr, s_ptr, picked_ptr, target_ptr, loss_ptr, lse_ptr, M, z_loss,
    BLOCK_M: tl.constexpr, SPLITS: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    # Program i joins the SPLITS parts of each row of a tile; BLOCK_S >= SPLITS. About 13 lines.
    ### BEGIN SOLUTION
    rows, splits = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_S)
    part = splits[:, None] * M + rows[None, :]
    valid = (splits[:, None] < SPLITS) & (rows[None, :] < M)
    m = tl.load(m_ptr + part, mask=valid, other=-float("inf"))
    s = tl.load(s_ptr + part, mask=valid, other=0.0)
    picked = tl.sum(tl.load(picked_ptr + part, mask=valid, other=0.0), 0)  # the target lies in one split
    greatest = tl.max(m, 0)
    lse = greatest + tl.log(tl.sum(s * tl.exp(m - greatest[None, :]), 0))
    target = tl.load(target_ptr + rows, mask=rows < M, other=-100)
    loss = lse - picked + z_loss * lse * lse
    tl.store(loss_ptr + rows, tl.where(target != -100, loss, 0.0), mask=rows < M)
    tl.store(lse_ptr + rows, lse, mask=rows < M)
    ### END SOLUTION


def linear_cross_entropy(x, weight, target, label_smoothing, z_loss):
    """x: [M, K], weight: [V, K], fp16 or bf16, any strides; target: [M] int64 contiguous, a row of weight, or -100: the
    row of x does not count; label_smoothing and z_loss: numbers from 0 to 1.

    With logits = x @ weight.T, [M, V], and q = (1 - label_smoothing) * one_hot(target) + label_smoothing / V, returns
    loss, [M] fp32: lse - sum(q * logits) + z_loss * lse**2, or 0 where the target is -100; and lse, [M] fp32: the
    logarithm of the sum of exp(logits) of each row.
    """
    # Make room for both results and for the scratch, three fp32 numbers a row and split. Launch both kernels and return
    # the results: about 17 lines.
    ### BEGIN SOLUTION
    (M, K), V = x.shape, weight.shape[0]
    loss = torch.empty((M,), dtype=torch.float32, device=x.device)
    lse = torch.empty((M,), dtype=torch.float32, device=x.device)
    m = torch.empty((SPLITS, M), dtype=torch.float32, device=x.device)
    s = torch.empty((SPLITS, M), dtype=torch.float32, device=x.device)
    picked = torch.empty((SPLITS, M), dtype=torch.float32, device=x.device)
    tiles = triton.cdiv(M, BLOCK_M)
    # Tiles of rows come first in the grid: programs that run together load the same rows of weight.
    linear_cross_entropy_partial_kernel[(tiles, SPLITS)](
        x, weight, target, m, s, picked, M, V, K, label_smoothing, *x.stride(), *weight.stride(),
        BLOCK_M=BLOCK_M, BLOCK_V=BLOCK_V, BLOCK_K=BLOCK_K, SPLITS=SPLITS, num_warps=8, num_stages=3,
    )  # fmt: skip
    linear_cross_entropy_combine_kernel[(tiles,)](
        m, s, picked, target, loss, lse, M, z_loss,
        BLOCK_M=BLOCK_M, SPLITS=SPLITS, BLOCK_S=triton.next_power_of_2(SPLITS),
    )  # fmt: skip
    return loss, lse
    ### END SOLUTION
