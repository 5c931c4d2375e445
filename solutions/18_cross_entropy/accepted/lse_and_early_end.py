"""Right: a row that does not count gets its zeros and ends there; the gradient is made from the log-sum-exp. Liger's
kernel is built so, but for its results, which take the place of the logits."""

import torch
import triton
import triton.language as tl

BLOCK_V, IGNORED = 2048, tl.constexpr(-100)


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, dloss_ptr, loss_ptr, dlogits_ptr, V, stride_lm, stride_lv, stride_g, stride_dm,
    BLOCK_V: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * stride_lm
    dlogits_ptr += row * stride_dm
    target = tl.load(target_ptr + row)
    lanes = tl.arange(0, BLOCK_V)
    if target == IGNORED:
        for start in range(0, V, BLOCK_V):
            tl.store(dlogits_ptr + start + lanes, 0.0, mask=start + lanes < V)
        tl.store(loss_ptr + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    x_target = tl.load(logits_ptr + target * stride_lv).to(tl.float32)
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(logits_ptr + cols * stride_lv, mask=cols < V, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x))
        if m_new > float("-inf"):
            d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)
    g = tl.load(dloss_ptr + row * stride_g)
    for start in range(0, V, BLOCK_V):
        cols = start + lanes
        x = tl.load(logits_ptr + cols * stride_lv, mask=cols < V, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - lse)
        p = tl.where(cols == target, p - 1, p)
        tl.store(dlogits_ptr + cols, (p * g).to(dlogits_ptr.dtype.element_ty), mask=cols < V)
    tl.store(loss_ptr + row, lse - x_target)


def cross_entropy(logits, target, dloss):
    M, V = logits.shape
    loss = torch.empty(M, dtype=torch.float32, device=logits.device)
    dlogits = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(M,)](
        logits, target, dloss, loss, dlogits, V, *logits.stride(), dloss.stride(0), dlogits.stride(0), BLOCK_V=BLOCK_V,
        num_warps=8,
    )  # fmt: skip
    return loss, dlogits
