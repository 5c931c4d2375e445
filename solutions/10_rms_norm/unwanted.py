"""Kept out by the gate: three launches, for the sum, for the mean squares, and for z. Two launches are as near to one
as 5 bytes are to 4: the counts of launches and reads keep these out."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_add_kernel(x_ptr, residual_ptr, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < count)
    tl.store(residual_ptr + i, tl.load(residual_ptr + i, mask=i < count) + x, mask=i < count)


@triton.jit
def add_rms_norm_mean_kernel(residual_ptr, rstd_ptr, N, eps, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    h = tl.load(residual_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(rstd_ptr + row, 1.0 / tl.sqrt(tl.sum(h * h, 0) / N + eps))


@triton.jit
def add_rms_norm_scale_kernel(residual_ptr, rstd_ptr, weight_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    h = tl.load(residual_ptr + row * N + cols, mask=cols < N).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=cols < N).to(tl.float32)
    tl.store(z_ptr + row * N + cols, h * tl.load(rstd_ptr + row) * weight, mask=cols < N)


def add_rms_norm(x, residual, weight, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    rstd = torch.empty(M, dtype=torch.float32, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 16)
    add_rms_norm_add_kernel[(triton.cdiv(M * N, 1024),)](x, residual, M * N, BLOCK=1024)
    add_rms_norm_mean_kernel[(M,)](residual, rstd, N, eps, BLOCK_N=BLOCK_N, num_warps=num_warps)
    add_rms_norm_scale_kernel[(M,)](residual, rstd, weight, z, N, BLOCK_N=BLOCK_N, num_warps=num_warps)
    return z
