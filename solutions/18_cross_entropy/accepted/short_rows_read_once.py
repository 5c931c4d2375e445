"""Right: the first block stays in registers while a loop goes through the others, so that short rows are read once;
programs take several rows."""

import torch
import triton
import triton.language as tl

BLOCK_V, PROGRAMS = 4096, 1056


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, dloss_ptr, loss_ptr, dlogits_ptr, M, V, stride_lm, stride_lv, stride_g, stride_dm,
    BLOCK_V: tl.constexpr,
):  # fmt: skip
    lanes = tl.arange(0, BLOCK_V)
    for number in range(tl.program_id(0), M, tl.num_programs(0)):
        row = number.to(tl.int64)
        logits_row, dlogits_row = logits_ptr + row * stride_lm, dlogits_ptr + row * stride_dm
        target = tl.load(target_ptr + row)
        factor = tl.load(dloss_ptr + row * stride_g)
        counts = target != -100
        first = tl.load(logits_row + lanes * stride_lv, mask=lanes < V, other=-float("inf")).to(tl.float32)
        greatest = tl.max(first, 0)
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = tl.sum(tl.exp(first - shift), 0)
        for start in range(BLOCK_V, V, BLOCK_V):
            cols = start + lanes
            x = tl.load(logits_row + cols * stride_lv, mask=cols < V, other=-float("inf")).to(tl.float32)
            larger = tl.maximum(greatest, tl.max(x, 0))
            shift = tl.where(larger == -float("inf"), 0.0, larger)
            total = total * tl.exp(greatest - shift) + tl.sum(tl.exp(x - shift), 0)
            greatest = larger
        x_target = tl.load(logits_row + target * stride_lv, mask=counts, other=0.0).to(tl.float32)
        tl.store(loss_ptr + row, tl.where(counts, greatest + tl.log(total) - x_target, 0.0))
        gradient = (tl.exp(first - greatest) / total - tl.where(lanes == target, 1.0, 0.0)) * factor
        tl.store(dlogits_row + lanes, tl.where(counts, gradient, 0.0), mask=lanes < V)
        for start in range(BLOCK_V, V, BLOCK_V):
            cols = start + lanes
            x = tl.load(logits_row + cols * stride_lv, mask=cols < V, other=0.0).to(tl.float32)
            gradient = (tl.exp(x - greatest) / total - tl.where(cols == target, 1.0, 0.0)) * factor
            tl.store(dlogits_row + cols, tl.where(counts, gradient, 0.0), mask=cols < V)


def cross_entropy(logits, target, dloss):
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(min(M, PROGRAMS),)](
        logits, target, dloss, loss, dlogits, M, V, *logits.stride(), *dloss.stride(), dlogits.stride(0),
        BLOCK_V=BLOCK_V, num_warps=8,
    )  # fmt: skip
    return loss, dlogits
