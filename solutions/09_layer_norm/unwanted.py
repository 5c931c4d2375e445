"""Kept out by the gate: a row is read three times, for its mean, for its variance, and for the result."""

import torch
import triton
import triton.language as tl

STEP = 1024


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, z_ptr, mean_ptr, rstd_ptr, N, stride_xm, stride_zm, eps, STEP: tl.constexpr
):
    row = tl.program_id(0)
    lanes = tl.arange(0, STEP)
    x_row, z_row = x_ptr + row * stride_xm, z_ptr + row * stride_zm
    total = tl.zeros((STEP,), tl.float32)
    for start in range(0, N, STEP):
        cols = start + lanes
        total += tl.load(x_row + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / N
    squares = tl.zeros((STEP,), tl.float32)
    for start in range(0, N, STEP):
        cols = start + lanes
        x = tl.load(x_row + cols, mask=cols < N, other=0.0).to(tl.float32)
        d = tl.where(cols < N, x - mean, 0.0)
        squares += d * d
    rstd = 1 / tl.sqrt(tl.sum(squares, 0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, STEP):
        cols = start + lanes
        mask = cols < N
        x = tl.load(x_row + cols, mask=mask).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
        tl.store(z_row + cols, (x - mean) * rstd * weight + bias, mask=mask)


def layer_norm(x, weight, bias, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    mean = torch.empty(M, dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    layer_norm_kernel[(M,)](x, weight, bias, z, mean, rstd, N, x.stride(0), z.stride(0), eps, STEP=STEP, num_warps=8)
    return z, mean, rstd
