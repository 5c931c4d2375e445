"""Right: a pair of a maximum and a sum for each lane, merged by a function of the file's own; the gradient is kept from
rows that do not count by a factor that is 0 and by probabilities that are 0."""

import torch
import triton
import triton.language as tl

BLOCK_V = 1024


@triton.jit
def merged(m, s, other_m, other_s):
    larger = tl.maximum(m, other_m)
    shift = tl.where(larger == -float("inf"), 0.0, larger)
    return larger, s * tl.exp(m - shift) + other_s * tl.exp(other_m - shift)


@triton.jit
def gradient(x, m, s, is_target, factor):
    return (tl.exp(x - m) / s - tl.where(is_target, 1.0, 0.0)) * factor


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, dloss_ptr, loss_ptr, dlogits_ptr, V, stride_lm, stride_lv, stride_g, stride_dm,
    BLOCK_V: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    counts = target >= 0
    m = tl.full((BLOCK_V,), -float("inf"), tl.float32)
    s = tl.zeros((BLOCK_V,), tl.float32)
    for start in range(0, V, BLOCK_V):
        cols = start + tl.arange(0, BLOCK_V)
        mask = (cols < V) & counts  # a row that does not count is not read at all
        x = tl.load(logits_ptr + row * stride_lm + cols * stride_lv, mask=mask, other=-float("inf")).to(tl.float32)
        m, s = merged(m, s, x, 1.0)
    m, s = tl.reduce((m, s), 0, merged)
    x_target = tl.load(logits_ptr + row * stride_lm + target * stride_lv, mask=counts, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(counts, m + tl.log(s) - x_target, 0.0))
    factor = tl.load(dloss_ptr + row * stride_g, mask=counts, other=0.0)
    m, s = tl.where(counts, m, 0.0), tl.where(counts, s, 1.0)
    for start in range(0, V, BLOCK_V):
        cols = start + tl.arange(0, BLOCK_V)
        mask = (cols < V) & counts
        x = tl.load(logits_ptr + row * stride_lm + cols * stride_lv, mask=mask, other=-float("inf")).to(tl.float32)
        d = gradient(x, m, s, cols == target, factor)
        tl.store(dlogits_ptr + row * stride_dm + cols, d, mask=cols < V)


def cross_entropy(logits, target, dloss):
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(M,)](
        logits, target, dloss, loss, dlogits, V, *logits.stride(), *dloss.stride(), dlogits.stride(0), BLOCK_V=BLOCK_V,
        num_warps=4,
    )  # fmt: skip
    return loss, dlogits
