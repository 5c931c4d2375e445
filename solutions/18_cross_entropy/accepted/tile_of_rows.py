"""Right: a program goes along several rows in a 2-D tile, a maximum, a sum, a target and a factor for each."""

import torch
import triton
import triton.language as tl

ROWS, BLOCK_V = 2, 2048


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, dloss_ptr, loss_ptr, dlogits_ptr, M, V, stride_lm, stride_lv, stride_g, stride_dm,
    ROWS: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    target = tl.load(target_ptr + rows, mask=rows < M, other=-100)
    counts = target != -100
    greatest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, V, BLOCK_V):
        cols = (start + tl.arange(0, BLOCK_V))[None, :]
        mask = (rows < M)[:, None] & (cols < V)
        x = tl.load(logits_ptr + rows[:, None] * stride_lm + cols * stride_lv, mask=mask, other=-float("inf"))
        x = x.to(tl.float32)
        larger = tl.maximum(greatest, tl.max(x, 1))
        shift = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(greatest - shift) + tl.sum(tl.exp(x - shift[:, None]), 1)
        greatest = larger
    x_target = tl.load(logits_ptr + rows * stride_lm + target * stride_lv, mask=counts, other=0.0).to(tl.float32)
    loss = tl.where(counts, greatest + tl.log(total) - x_target, 0.0)
    tl.store(loss_ptr + rows, loss, mask=rows < M)
    factor = tl.load(dloss_ptr + rows * stride_g, mask=counts, other=0.0)
    for start in range(0, V, BLOCK_V):
        cols = (start + tl.arange(0, BLOCK_V))[None, :]
        mask = (rows < M)[:, None] & (cols < V)
        x = tl.load(logits_ptr + rows[:, None] * stride_lm + cols * stride_lv, mask=mask).to(tl.float32)
        p = tl.exp(x - greatest[:, None]) / total[:, None]
        gradient = (p - tl.where(cols == target[:, None], 1.0, 0.0)) * factor[:, None]
        gradient = tl.where(counts[:, None], gradient, 0.0)
        tl.store(dlogits_ptr + rows[:, None] * stride_dm + cols, gradient, mask=mask)


def cross_entropy(logits, target, dloss):
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(triton.cdiv(M, ROWS),)](
        logits, target, dloss, loss, dlogits, M, V, *logits.stride(), *dloss.stride(), dlogits.stride(0), ROWS=ROWS,
        BLOCK_V=BLOCK_V, num_warps=8,
    )  # fmt: skip
    return loss, dlogits
