"""18 · Cross entropy: how wrong each row's prediction is, and the gradient of that, in one launch."""

import torch
import triton
import triton.language as tl

BLOCK_V = 4096  # columns in a block: with 8 warps a thread holds 16, two loads of 16 bytes in bf16


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, dloss_ptr, loss_ptr, dlogits_ptr, V, stride_lm, stride_lv, stride_g, stride_dm, stride_dv,
    BLOCK_V: tl.constexpr,
):  # fmt: skip
    # Program i goes along row i twice: for its loss, then for its gradient: about 25 lines.
    ### BEGIN SOLUTION
    row = tl.program_id(0).to(tl.int64)  # logits and dlogits may have more than 2**31 elements
    logits_row, dlogits_row = logits_ptr + row * stride_lm, dlogits_ptr + row * stride_dm
    target = tl.load(target_ptr + row)
    counts = target != -100
    lanes = tl.arange(0, BLOCK_V)
    greatest = -float("inf")  # of the columns so far
    total = 0.0  # of exp(x - greatest) over the columns so far
    for start in range(0, V, BLOCK_V):  # the first pass
        cols = start + lanes
        x = tl.load(logits_row + cols * stride_lv, mask=cols < V, other=-float("inf")).to(tl.float32)
        before = greatest
        greatest = tl.maximum(before, tl.max(x, 0))
        # While all columns so far are -inf, greatest is too, and -inf - -inf would be NaN.
        shift = tl.where(greatest == -float("inf"), 0.0, greatest)
        total = total * tl.exp(before - shift) + tl.sum(tl.exp(x - shift), 0)
    # In a row that does not count the target is no column: its address is not to be touched.
    x_target = tl.load(logits_row + target * stride_lv, mask=counts, other=0.0).to(tl.float32)
    loss = greatest + tl.log(total) - x_target
    tl.store(loss_ptr + row, tl.where(counts, loss, 0.0))  # where and no product: 0 * NaN is NaN
    factor = tl.load(dloss_ptr + row * stride_g)
    for start in range(0, V, BLOCK_V):  # the second pass
        cols = start + lanes
        x = tl.load(logits_row + cols * stride_lv, mask=cols < V).to(tl.float32)
        p = tl.exp(x - greatest) / total
        gradient = (p - tl.where(cols == target, 1.0, 0.0)) * factor
        tl.store(dlogits_row + cols * stride_dv, tl.where(counts, gradient, 0.0), mask=cols < V)
    ### END SOLUTION


def cross_entropy(logits, target, dloss):
    """logits: [M, V] fp32, fp16 or bf16, any strides; target: [M] int64 contiguous, a column, or -100: the row does not
    count; dloss: [M] fp32, any stride.

    Returns loss, [M] fp32: log(sum of exp(row)) - row[target]; and dlogits, [M, V] contiguous, dtype of logits: the
    gradient of sum(dloss * loss). Both are 0 in rows with target -100.
    """
    # Allocate both results, launch the kernel with a program per row, choose the number of warps: about 6 lines.
    ### BEGIN SOLUTION
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(M,)](
        logits, target, dloss, loss, dlogits, V, *logits.stride(), *dloss.stride(), *dlogits.stride(),
        BLOCK_V=BLOCK_V, num_warps=8,
    )  # fmt: skip
    return loss, dlogits
    ### END SOLUTION
