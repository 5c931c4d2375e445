"""Right: a split takes every SPLITS-th block of columns and leaves two numbers, a log-sum-exp to the base of 2 and
what it has picked; the second launch joins them one after the other."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_V, BLOCK_K = 128, 256, 64  # one tile of logits, and the step along K
SPLITS = 4  # programs that share the vocabulary of one tile of rows


@triton.jit
def linear_cross_entropy_partial_kernel(
    x_ptr, weight_ptr, target_ptr, lse_ptr, picked_ptr, M, V, K, smoothing,
    stride_xm, stride_xk, stride_wv, stride_wk,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    rows, split = tl.program_id(0) // SPLITS * BLOCK_M + tl.arange(0, BLOCK_M), tl.program_id(0) % SPLITS
    k = tl.arange(0, BLOCK_K)
    target = tl.load(target_ptr + rows, mask=rows < M, other=-100)
    # The target's distribution: on one column the one, on all V columns a share of what smoothing takes from it.
    one, share_of_all = 1.0 - smoothing, smoothing / V
    greatest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(split * BLOCK_V, V, SPLITS * BLOCK_V):
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
        logits = tl.where(cols[None, :] < V, logits * 1.4426950408889634, -float("inf"))
        larger = tl.maximum(greatest, tl.max(logits, 1))
        total = total * tl.exp2(greatest - larger) + tl.sum(tl.exp2(logits - larger[:, None]), 1)
        greatest = larger
    part = split * M + rows
    # A split without columns leaves -inf.
    tl.store(lse_ptr + part, greatest + tl.log2(total), mask=rows < M)
    tl.store(picked_ptr + part, picked, mask=rows < M)


@triton.jit
def linear_cross_entropy_combine_kernel(
    part_ptr, picked_ptr, target_ptr, loss_ptr, lse_ptr, M, z_loss, BLOCK_M: tl.constexpr, SPLITS: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    lse = tl.load(part_ptr + rows, mask=rows < M, other=0.0)  # the first split always has columns
    picked = tl.load(picked_ptr + rows, mask=rows < M, other=0.0)
    for split in range(1, SPLITS):
        another = tl.load(part_ptr + split * M + rows, mask=rows < M, other=-float("inf"))
        larger = tl.maximum(lse, another)
        lse = larger + tl.log2(tl.exp2(lse - larger) + tl.exp2(another - larger))
        picked += tl.load(picked_ptr + split * M + rows, mask=rows < M, other=0.0)
    lse *= 0.6931471805599453
    target = tl.load(target_ptr + rows, mask=rows < M, other=-100)
    loss = lse - picked + z_loss * lse * lse
    tl.store(loss_ptr + rows, tl.where(target != -100, loss, 0.0), mask=rows < M)
    tl.store(lse_ptr + rows, lse, mask=rows < M)


def linear_cross_entropy(x, weight, target, label_smoothing, z_loss):
    (M, K), V = x.shape, weight.shape[0]
    loss = torch.empty((M,), dtype=torch.float32, device=x.device)
    lse = torch.empty((M,), dtype=torch.float32, device=x.device)
    part = torch.empty((SPLITS, M), dtype=torch.float32, device=x.device)
    picked = torch.empty((SPLITS, M), dtype=torch.float32, device=x.device)
    tiles = triton.cdiv(M, BLOCK_M)
    linear_cross_entropy_partial_kernel[(tiles * SPLITS,)](
        x, weight, target, part, picked, M, V, K, label_smoothing, *x.stride(), *weight.stride(),
        BLOCK_M=BLOCK_M, BLOCK_V=BLOCK_V, BLOCK_K=BLOCK_K, SPLITS=SPLITS, num_warps=8, num_stages=3,
    )  # fmt: skip
    linear_cross_entropy_combine_kernel[(tiles,)](
        part, picked, target, loss, lse, M, z_loss, BLOCK_M=BLOCK_M, SPLITS=SPLITS
    )
    return loss, lse
