"""Layer norm that counts padded lanes in the variance. A row of a power of two has none."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, z_ptr, mean_ptr, rstd_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, eps,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program i normalises row i and stores its mean and rstd; BLOCK_N >= N: about 12 lines.
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0)  # 0 adds nothing to the first sum
    x = x.to(tl.float32)  # sums and squares of fp16 would lose digits, or overflow
    mean = tl.sum(x, 0) / N
    d = x - mean
    rstd = 1 / tl.sqrt(tl.sum(d * d, 0) / N + eps)  # eps inside the root: a row of equal numbers has variance 0
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)  # no `other`: no more sums
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    tl.store(z_ptr + row * stride_zm + cols * stride_zn, d * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)  # one number per program: no mask
    tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, eps):
    """x: [M, N] fp32, fp16 or bf16, any strides, N <= 16384; weight, bias: [N] contiguous, dtype of x; eps: a number.

    Returns z, [M, N] contiguous, dtype of x, and mean and rstd, [M] fp32: rstd = 1 / sqrt(variance + eps).
    """
    # Make room for the results, choose block, warps and grid, launch: about 9 lines.
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)  # empty_like would keep the strides of a view
    mean = torch.empty(M, dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    BLOCK_N = triton.next_power_of_2(N)  # tl.arange wants a power of two
    num_warps = min(max(BLOCK_N // 256, 1), 16)  # 8 lanes per thread, until a block has 4096
    layer_norm_kernel[(M,)](
        x, weight, bias, z, mean, rstd, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), eps,
        BLOCK_N=BLOCK_N, num_warps=num_warps,
    )  # fmt: skip
    return z, mean, rstd
