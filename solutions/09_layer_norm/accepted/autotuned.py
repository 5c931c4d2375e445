"""Right: configurations that differ in warps; the statistics come from a helper function."""

import torch
import triton
import triton.language as tl


@triton.jit
def statistics(x, mask, N, eps):
    mean = tl.sum(x, 0) / N
    d = tl.where(mask, x - mean, 0.0)
    return mean, tl.rsqrt(tl.sum(d * d, 0) / N + eps)


@triton.autotune(configs=[triton.Config({}, num_warps=warps) for warps in (8, 16)], key=["N"])
@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, z_ptr, mean_ptr, rstd_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, eps,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    mean, rstd = statistics(x, mask, N, eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    z = tl.fma((x - mean) * rstd, weight, bias)
    tl.store(z_ptr + row * stride_zm + cols * stride_zn, z.to(z_ptr.dtype.element_ty), mask=mask)


def layer_norm(x, weight, bias, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    statistics = torch.empty(2 * M, dtype=torch.float32, device=x.device)
    mean, rstd = statistics[:M], statistics[M:]
    layer_norm_kernel[(M,)](
        x, weight, bias, z, mean, rstd, M, N, *x.stride(), *z.stride(), eps, BLOCK_N=triton.next_power_of_2(N)
    )
    return z, mean, rstd
