"""Right: a row in two blocks of half its width, which are kept until both have added to the mean square."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_rm, stride_rn, stride_w,
    stride_zm, stride_zn, eps, HALF: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    left = tl.arange(0, HALF)
    right = left + HALF
    x_row, r_row, z_row = x_ptr + row * stride_xm, residual_ptr + row * stride_rm, z_ptr + row * stride_zm
    a = tl.load(x_row + left * stride_xn, left < N, other=0.0).to(tl.float32)
    a += tl.load(r_row + left * stride_rn, left < N, other=0.0).to(tl.float32)
    b = tl.load(x_row + right * stride_xn, right < N, other=0.0).to(tl.float32)
    b += tl.load(r_row + right * stride_rn, right < N, other=0.0).to(tl.float32)
    rstd = 1 / tl.sqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / N + eps)
    tl.store(r_row + left * stride_rn, a, left < N)
    tl.store(r_row + right * stride_rn, b, right < N)
    tl.store(z_row + left * stride_zn, a * rstd * tl.load(weight_ptr + left * stride_w, left < N), left < N)
    tl.store(z_row + right * stride_zn, b * rstd * tl.load(weight_ptr + right * stride_w, right < N), right < N)


def add_rms_norm(x, residual, weight, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    HALF = max(triton.next_power_of_2(N) // 2, 1)
    add_rms_norm_kernel[(M,)](
        x, residual, weight, z, M, N, *x.stride(), *residual.stride(), *weight.stride(), *z.stride(), eps, HALF=HALF,
        num_warps=min(max(HALF // 256, 4), 16),
    )  # fmt: skip
    return z
