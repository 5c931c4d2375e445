"""Right: the target's logit is picked out of its block, so that no address is made of the target; powers of 2, and any
target of 0 or more counts."""

import torch
import triton
import triton.language as tl

BLOCK_V = 4096
LOG2_E, LN_2 = tl.constexpr(1.4426950408889634), tl.constexpr(0.6931471805599453)


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, dloss_ptr, loss_ptr, dlogits_ptr, V, stride_lm, stride_lv, stride_g, stride_dm, stride_dv,
    BLOCK_V: tl.constexpr,
):  # fmt: skip
    row = tl.cast(tl.program_id(0), tl.int64)
    target = tl.load(target_ptr + row)
    greatest, total, x_target = -float("inf"), 0.0, 0.0
    for i in range(tl.cdiv(V, BLOCK_V)):
        cols = i * BLOCK_V + tl.arange(0, BLOCK_V)
        x = tl.load(logits_ptr + row * stride_lm + cols * stride_lv, mask=cols < V, other=-float("inf"))
        x = x.to(tl.float32)
        x_target += tl.sum(tl.where(cols == target, x, 0.0), 0)
        largest = tl.max(x, 0)
        if largest > greatest:
            total *= tl.exp2((greatest - largest) * LOG2_E)
            greatest = largest
        # a block of -inf alone, with nothing before it, adds nothing
        total += tl.sum(tl.where(x == -float("inf"), 0.0, tl.exp2((x - greatest) * LOG2_E)), 0)
    counts = target >= 0
    tl.store(loss_ptr + row, tl.where(counts, (greatest - x_target) + tl.log2(total) * LN_2, 0.0))
    factor = tl.where(counts, tl.load(dloss_ptr + row * stride_g), 0.0)
    for i in range(tl.cdiv(V, BLOCK_V)):
        cols = i * BLOCK_V + tl.arange(0, BLOCK_V)
        x = tl.load(logits_ptr + row * stride_lm + cols * stride_lv, mask=cols < V, other=0.0).to(tl.float32)
        p = tl.exp2((x - greatest) * LOG2_E) / total
        difference = tl.where(counts, p - (cols == target).to(tl.float32), 0.0)
        tl.store(dlogits_ptr + row * stride_dm + cols * stride_dv, difference * factor, mask=cols < V)


def cross_entropy(logits, target, dloss):
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(M,)](
        logits, target, dloss, loss, dlogits, V, *logits.stride(), *dloss.stride(), *dlogits.stride(), BLOCK_V=BLOCK_V,
        num_warps=16,
    )  # fmt: skip
    return loss, dlogits
