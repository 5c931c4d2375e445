"""Right: four warps at least. Each holds a row of up to 32 columns, and the first alone stores anything."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, z_ptr, N, stride_xm, stride_xn, stride_rm, stride_rn, stride_w, eps,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    residual_ptr += row * stride_rm
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    h = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    h += tl.load(residual_ptr + cols * stride_rn, mask=mask, other=0.0).to(tl.float32)
    if BLOCK_N <= 32:
        tl.store(residual_ptr + cols * stride_rn, h, mask=mask)
    squares = tl.sum(h * h, 0)
    if BLOCK_N > 32:  # now a sum over several warps has made them wait
        tl.store(residual_ptr + cols * stride_rn, h, mask=mask)
    rstd = 1.0 / tl.sqrt(squares / N + eps)
    weight = tl.load(weight_ptr + cols * stride_w, mask=mask, other=0.0).to(tl.float32)
    tl.store(z_ptr + row * N + cols, h * rstd * weight, mask=mask)


def add_rms_norm(x, residual, weight, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    add_rms_norm_kernel[(M,)](
        x, residual, weight, z, N, *x.stride(), *residual.stride(), *weight.stride(), eps, BLOCK_N=BLOCK_N,
        num_warps=max(4, min(BLOCK_N // 256, 16)),
    )  # fmt: skip
    return z
