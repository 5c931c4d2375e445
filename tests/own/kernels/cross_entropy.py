import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits_ptr, targets_ptr, loss_ptr, n_cols, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    logits_ptr += row * row_stride
    target = tl.load(targets_ptr + row)
    m = float("-inf")
    d = 0.0
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + offs, mask=offs < n_cols, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    x_target = tl.load(logits_ptr + target).to(tl.float32)
    tl.store(loss_ptr + row, m + tl.log(d) - x_target)


def cross_entropy(logits, targets):
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(n_rows,)](logits, targets, loss, n_cols, logits.stride(0), BLOCK=128)
    return loss
