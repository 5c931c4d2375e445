"""Kept out by the gate: log-probabilities in fp32 go through memory, 14 bytes for each logit instead of 6. A third
reading of logits makes 8 of 6, which is too near to the solution: the count of reads keeps that out."""

import torch
import triton
import triton.language as tl

BLOCK_V = 4096


@triton.jit
def log_softmax_kernel(logits_ptr, target_ptr, loss_ptr, log_p_ptr, V, stride_lm, stride_lv, BLOCK_V: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride_lm
    lanes = tl.arange(0, BLOCK_V)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(logits_row + cols * stride_lv, mask=cols < V, other=-float("inf")).to(tl.float32)
        before = greatest
        greatest = tl.maximum(before, tl.max(x, 0))
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = total * tl.exp(before - shift) + tl.sum(tl.exp(x - shift), 0)
    lse = greatest + tl.log(total)
    target = tl.load(target_ptr + row)
    counts = target != -100
    x_target = tl.load(logits_row + target * stride_lv, mask=counts, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(counts, lse - x_target, 0.0))
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(logits_row + cols * stride_lv, mask=cols < V).to(tl.float32)
        tl.store(log_p_ptr + row * V + cols, x - lse, mask=cols < V)


@triton.jit
def gradient_kernel(log_p_ptr, target_ptr, dloss_ptr, dlogits_ptr, V, stride_g, BLOCK_V: tl.constexpr):
    row, cols = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    target = tl.load(target_ptr + row)
    p = tl.exp(tl.load(log_p_ptr + row * V + cols, mask=cols < V))
    gradient = (p - tl.where(cols == target, 1.0, 0.0)) * tl.load(dloss_ptr + row * stride_g)
    tl.store(dlogits_ptr + row * V + cols, tl.where(target != -100, gradient, 0.0), mask=cols < V)


def cross_entropy(logits, target, dloss):
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    log_p = torch.empty((M, V), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    log_softmax_kernel[(M,)](logits, target, loss, log_p, V, *logits.stride(), BLOCK_V=BLOCK_V, num_warps=8)
    gradient_kernel[(M, triton.cdiv(V, BLOCK_V))](
        log_p, target, dloss, dlogits, V, *dloss.stride(), BLOCK_V=BLOCK_V, num_warps=8
    )
    return loss, dlogits
