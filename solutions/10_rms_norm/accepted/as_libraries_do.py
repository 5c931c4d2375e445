"""Right, in the structure of the libraries' fused kernels (FlagGems, Liger): a row's pointers are moved first, the sum
is stored at once, each square is divided by N before the reduction, and the reciprocal root is one instruction. Unlike
theirs it rounds once, after the weight."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_of(h, N, eps):
    return tl.rsqrt(tl.sum(h * h / N, axis=0) + eps)


@triton.jit
def add_rms_norm_kernel(
    X, R, W, Y, x_row_stride, x_col_stride, r_row_stride, r_col_stride, w_stride, y_row_stride, y_col_stride, N, eps,
    BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    X += pid * x_row_stride
    R += pid * r_row_stride
    Y += pid * y_row_stride
    offsets = tl.arange(0, BLOCK_SIZE)
    mask = offsets < N
    h = tl.load(X + offsets * x_col_stride, mask, other=0.0).to(tl.float32)
    h += tl.load(R + offsets * r_col_stride, mask, other=0.0).to(tl.float32)
    tl.store(R + offsets * r_col_stride, h, mask=mask)
    rstd = rms_of(h, N, eps)
    w = tl.load(W + offsets * w_stride, mask=mask, other=0.0)
    y = (h * rstd * w.to(tl.float32)).to(Y.dtype.element_ty)
    tl.store(Y + offsets * y_col_stride, y, mask=mask)


def add_rms_norm(x, residual, weight, eps):
    M, N = x.shape
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(N)
    warps = 4 if block < 2048 else 8 if block < 8192 else 16 if block < 16384 else 32
    warps = min(warps, max(block // 32, 1))  # in place: no column has copies in several warps
    add_rms_norm_kernel[(M,)](
        x, residual, weight, y, *x.stride(), *residual.stride(), weight.stride(0), *y.stride(), N, eps,
        BLOCK_SIZE=block, num_warps=warps,
    )  # fmt: skip
    return y
