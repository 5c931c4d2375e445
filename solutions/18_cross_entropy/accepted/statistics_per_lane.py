"""Right: each lane keeps a maximum and a sum of its own, merged when the row is done; 1 / sum is a factor, and at the
target the gradient is -(1 - p)."""

import torch
import triton
import triton.language as tl

BLOCK_V = 2048


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, dloss_ptr, loss_ptr, dlogits_ptr, V, stride_lm, stride_lv, stride_g, BLOCK_V: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride_lm
    greatest = tl.full((BLOCK_V,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_V,), tl.float32)
    for start in range(0, V, BLOCK_V):
        cols = start + tl.arange(0, BLOCK_V)
        x = tl.load(logits_row + cols * stride_lv, mask=cols < V, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(greatest, x)
        nothing_yet = larger == -float("inf")
        total = tl.where(nothing_yet, 0.0, total * tl.exp(greatest - larger) + tl.exp(x - larger))
        greatest = larger
    of_row = tl.max(greatest, 0)
    total = tl.sum(tl.where(total == 0, 0.0, total * tl.exp(greatest - of_row)), 0)
    target = tl.load(target_ptr + row)
    counts = target >= 0
    column = tl.where(counts, target, 0)  # a row that does not count looks at column 0
    x_target = tl.load(logits_row + column * stride_lv).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(counts, of_row + tl.log(total) - x_target, 0.0))
    factor = tl.load(dloss_ptr + row * stride_g)
    share = 1 / total
    for start in range(0, V, BLOCK_V):
        cols = start + tl.arange(0, BLOCK_V)
        x = tl.load(logits_row + cols * stride_lv, mask=cols < V, eviction_policy="evict_first").to(tl.float32)
        p = tl.exp(x - of_row) * share
        gradient = tl.where(cols == target, -(1 - p), p) * factor
        tl.store(dlogits_ptr + row * V + cols, tl.where(counts, gradient, 0.0), mask=cols < V)


def cross_entropy(logits, target, dloss):
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(M,)](
        logits, target, dloss, loss, dlogits, V, *logits.stride(), *dloss.stride(), BLOCK_V=BLOCK_V, num_warps=8
    )
    return loss, dlogits
