"""18, rung 4: one launch and two reads, but a warp for each row.

What: blocks of 256 columns and one warp, which has 16 bytes of each thread under way at a time.
Why it is slow: each of 501 iterations waits for its load, and for a maximum and a sum over the warp; in fp32, which has
twice the bytes for as many logits, that hardly counts.
"""

import torch
import triton
import triton.language as tl

BLOCK_V = 256


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, dloss_ptr, loss_ptr, dlogits_ptr, V, stride_lm, stride_g, stride_dm, BLOCK_V: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    logits_row, dlogits_row = logits_ptr + row * stride_lm, dlogits_ptr + row * stride_dm
    target = tl.load(target_ptr + row)
    counts = target != -100
    lanes = tl.arange(0, BLOCK_V)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(logits_row + cols, mask=cols < V, other=-float("inf")).to(tl.float32)
        before = greatest
        greatest = tl.maximum(before, tl.max(x, 0))
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = total * tl.exp(before - shift) + tl.sum(tl.exp(x - shift), 0)
    x_target = tl.load(logits_row + target, mask=counts, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(counts, greatest + tl.log(total) - x_target, 0.0))
    factor = tl.load(dloss_ptr + row * stride_g)
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(logits_row + cols, mask=cols < V).to(tl.float32)
        gradient = (tl.exp(x - greatest) / total - tl.where(cols == target, 1.0, 0.0)) * factor
        tl.store(dlogits_row + cols, tl.where(counts, gradient, 0.0), mask=cols < V)


def cross_entropy(logits, target, dloss):
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(M,)](
        logits, target, dloss, loss, dlogits, V, logits.stride(0), dloss.stride(0), dlogits.stride(0), BLOCK_V=BLOCK_V,
        num_warps=1,
    )  # fmt: skip
    return loss, dlogits
