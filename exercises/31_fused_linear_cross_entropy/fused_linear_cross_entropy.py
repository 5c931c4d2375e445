"""31 · Fused linear cross entropy: the loss of x @ weight.T, whose logits are never in memory."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_V, BLOCK_K = 128, 256, 64  # one tile of logits, and the step along K
SPLITS = 4  # programs that share the vocabulary of one tile of rows


@triton.jit
def linear_cross_entropy_partial_kernel(
    x_ptr, weight_ptr, target_ptr, m_ptr, s_ptr, picked_ptr, M, V, K, smoothing,
    stride_xm, stride_xk, stride_wv, stride_wk,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    # Program (i, split) has row tile i and a share of the vocabulary. It leaves three numbers of each row in scratch,
    # those of row r at split * M + r: about 33 lines.
    # YOUR CODE HERE
    pass


@triton.jit
def linear_cross_entropy_combine_kernel(
    m_ptr, s_ptr, picked_ptr, target_ptr, loss_ptr, lse_ptr, M, z_loss,
    BLOCK_M: tl.constexpr, SPLITS: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    # Program i joins the SPLITS parts of each row of a tile; BLOCK_S >= SPLITS. About 13 lines.
    # YOUR CODE HERE
    pass


def linear_cross_entropy(x, weight, target, label_smoothing, z_loss):
    """x: [M, K], weight: [V, K], fp16 or bf16, any strides; target: [M] int64 contiguous, a row of weight, or -100: the
    row of x does not count; label_smoothing and z_loss: numbers from 0 to 1.

    With logits = x @ weight.T, [M, V], and q = (1 - label_smoothing) * one_hot(target) + label_smoothing / V, returns
    loss, [M] fp32: lse - sum(q * logits) + z_loss * lse**2, or 0 where the target is -100; and lse, [M] fp32: the
    logarithm of the sum of exp(logits) of each row.
    """
    # Make room for both results and for the scratch, three fp32 numbers a row and split. Launch both kernels and return
    # the results: about 17 lines.
    # YOUR CODE HERE
    pass
