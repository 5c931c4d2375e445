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
    # YOUR CODE HERE
    pass


def cross_entropy(logits, target, dloss):
    """logits: [M, V] fp32, fp16 or bf16, any strides; target: [M] int64 contiguous, a column, or -100: the row does not
    count; dloss: [M] fp32, any stride.

    Returns loss, [M] fp32: log(sum of exp(row)) - row[target]; and dlogits, [M, V] contiguous, dtype of logits: the
    gradient of sum(dloss * loss). Both are 0 in rows with target -100.
    """
    # Allocate both results, launch the kernel with a program per row, choose the number of warps: about 6 lines.
    # YOUR CODE HERE
    pass
