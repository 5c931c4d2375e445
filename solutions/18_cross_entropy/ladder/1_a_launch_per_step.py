"""18, rung 1: a launch for each step, as torch takes them one after the other.

What: logits in fp32, their log-probabilities, the loss and the gradient of the log-probabilities, the gradient of the
logits in fp32, and that gradient in the dtype of logits.
Why it is slow: five launches, and between them matrices in fp32 that nobody asked for: for 16-bit logits 40 bytes
cross memory for each logit, where 6 are enough.
"""

import torch
import triton
import triton.language as tl

BLOCK_V = 4096  # columns in a block


@triton.jit
def convert_kernel(x_ptr, z_ptr, V, stride_xm, stride_xv, BLOCK_V: tl.constexpr):
    row, cols = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xv, mask=cols < V)
    tl.store(z_ptr + row * V + cols, x, mask=cols < V)


@triton.jit
def log_softmax_kernel(x_ptr, log_p_ptr, V, BLOCK_V: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_V)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(x_ptr + row * V + cols, mask=cols < V, other=-float("inf"))
        before = greatest
        greatest = tl.maximum(before, tl.max(x, 0))
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = total * tl.exp(before - shift) + tl.sum(tl.exp(x - shift), 0)
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(x_ptr + row * V + cols, mask=cols < V)
        tl.store(log_p_ptr + row * V + cols, x - greatest - tl.log(total), mask=cols < V)


@triton.jit
def loss_kernel(log_p_ptr, target_ptr, dloss_ptr, loss_ptr, dlog_p_ptr, V, stride_g, BLOCK_V: tl.constexpr):
    row, cols = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    target = tl.load(target_ptr + row)
    counts = target != -100
    factor = tl.load(dloss_ptr + row * stride_g)
    tl.store(dlog_p_ptr + row * V + cols, tl.where((cols == target) & counts, -factor, 0.0), mask=cols < V)
    if tl.program_id(1) == 0:
        log_p = tl.load(log_p_ptr + row * V + target, mask=counts, other=0.0)
        tl.store(loss_ptr + row, tl.where(counts, -log_p, 0.0))


@triton.jit
def log_softmax_backward_kernel(
    log_p_ptr, dlog_p_ptr, target_ptr, dloss_ptr, dx_ptr, V, stride_g, BLOCK_V: tl.constexpr
):
    """The gradients of a row's log-probabilities add up to -dloss, since all but one of them are 0."""
    row, cols = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    counts = tl.load(target_ptr + row) != -100
    total = -tl.load(dloss_ptr + row * stride_g)
    p = tl.exp(tl.load(log_p_ptr + row * V + cols, mask=cols < V))
    dlog_p = tl.load(dlog_p_ptr + row * V + cols, mask=cols < V)
    tl.store(dx_ptr + row * V + cols, tl.where(counts, dlog_p - p * total, 0.0), mask=cols < V)


def cross_entropy(logits, target, dloss):
    """logits: [M, V] fp32, fp16 or bf16, any strides; target: [M] int64 contiguous, a column, or -100: the row does not
    count; dloss: [M] fp32, any stride.

    Returns loss, [M] fp32: log(sum of exp(row)) - row[target]; and dlogits, [M, V] contiguous, dtype of logits: the
    gradient of sum(dloss * loss). Both are 0 in rows with target -100.
    """
    M, V = logits.shape
    x, log_p, dlog_p, dx = (torch.empty((M, V), dtype=torch.float32, device=logits.device) for _ in range(4))
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    blocks = (M, triton.cdiv(V, BLOCK_V))
    convert_kernel[blocks](logits, x, V, *logits.stride(), BLOCK_V=BLOCK_V)
    log_softmax_kernel[(M,)](x, log_p, V, BLOCK_V=BLOCK_V, num_warps=8)
    loss_kernel[blocks](log_p, target, dloss, loss, dlog_p, V, *dloss.stride(), BLOCK_V=BLOCK_V)
    log_softmax_backward_kernel[blocks](log_p, dlog_p, target, dloss, dx, V, *dloss.stride(), BLOCK_V=BLOCK_V)
    convert_kernel[blocks](dx, dlogits, V, *dx.stride(), BLOCK_V=BLOCK_V)
    return loss, dlogits
