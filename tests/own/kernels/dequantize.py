import torch
import triton
import triton.language as tl


@triton.jit
def dequantize_kernel(q_ptr, scale_ptr, out_ptr, n_rows, n_cols, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_rows * n_cols
    row = offs // n_cols
    col = offs % n_cols
    groups = tl.cdiv(n_cols, GROUP)
    q = tl.load(q_ptr + offs, mask=mask, other=0)
    scale = tl.load(scale_ptr + row * groups + col // GROUP, mask=mask, other=0.0)
    tl.store(out_ptr + offs, q.to(tl.float32) * scale, mask=mask)


def dequantize(q, scale):
    out = torch.empty(q.shape, dtype=torch.float32, device=q.device)
    n = q.numel()
    dequantize_kernel[(triton.cdiv(n, 256),)](q, scale, out, q.shape[0], q.shape[1], GROUP=32, BLOCK=256)
    return out
