"""18, rung 3: a launch for the losses and one for the gradient.

What: the first launch goes along each row for the maximum, and again for the sum; it stores the loss and the
log-sum-exp, from which the second launch makes the probabilities.
Why it is slow: logits are read three times and dlogits written once: four crossings of memory, where three are enough.
"""

import torch
import triton
import triton.language as tl

BLOCK_V = 4096  # columns in a block


@triton.jit
def cross_entropy_loss_kernel(
    logits_ptr, target_ptr, loss_ptr, lse_ptr, V, stride_lm, stride_lv, BLOCK_V: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride_lm
    target = tl.load(target_ptr + row)
    counts = target != -100
    lanes = tl.arange(0, BLOCK_V)
    greatest = -float("inf")
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(logits_row + cols * stride_lv, mask=cols < V, other=-float("inf")).to(tl.float32)
        greatest = tl.maximum(greatest, tl.max(x, 0))
    total = 0.0
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(logits_row + cols * stride_lv, mask=cols < V, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(x - greatest), 0)
    lse = greatest + tl.log(total)
    x_target = tl.load(logits_row + target * stride_lv, mask=counts, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(counts, lse - x_target, 0.0))
    tl.store(lse_ptr + row, lse)


@triton.jit
def cross_entropy_gradient_kernel(
    logits_ptr, target_ptr, dloss_ptr, lse_ptr, dlogits_ptr, V, stride_lm, stride_lv, stride_g, BLOCK_V: tl.constexpr
):
    row, cols = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    target = tl.load(target_ptr + row)
    x = tl.load(logits_ptr + row * stride_lm + cols * stride_lv, mask=cols < V).to(tl.float32)
    p = tl.exp(x - tl.load(lse_ptr + row))
    gradient = (p - tl.where(cols == target, 1.0, 0.0)) * tl.load(dloss_ptr + row * stride_g)
    tl.store(dlogits_ptr + row * V + cols, tl.where(target != -100, gradient, 0.0), mask=cols < V)


def cross_entropy(logits, target, dloss):
    """logits: [M, V] fp32, fp16 or bf16, any strides; target: [M] int64 contiguous, a column, or -100: the row does not
    count; dloss: [M] fp32, any stride.

    Returns loss, [M] fp32: log(sum of exp(row)) - row[target]; and dlogits, [M, V] contiguous, dtype of logits: the
    gradient of sum(dloss * loss). Both are 0 in rows with target -100.
    """
    M, V = logits.shape
    loss, lse = (torch.empty((M,), dtype=torch.float32, device=logits.device) for _ in range(2))
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_loss_kernel[(M,)](logits, target, loss, lse, V, *logits.stride(), BLOCK_V=BLOCK_V, num_warps=8)
    cross_entropy_gradient_kernel[(M, triton.cdiv(V, BLOCK_V))](
        logits, target, dloss, lse, dlogits, V, *logits.stride(), *dloss.stride(), BLOCK_V=BLOCK_V, num_warps=8
    )
    return loss, dlogits
