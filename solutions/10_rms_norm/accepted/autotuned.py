"""Right: the number of warps is tuned, and each trial gets the residual back as it was."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({}, num_warps=8), triton.Config({}, num_warps=16)], key=["N"],
    restore_value=["residual_ptr"],
)  # fmt: skip
@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, z_ptr, N, stride_xm, stride_xn, stride_rm, stride_rn, stride_w,
    stride_zm, stride_zn, eps, BLOCK_N: tl.constexpr,
):  # fmt: skip
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_N)
    inside = cols < N
    old = tl.load(residual_ptr + row * stride_rm + cols * stride_rn, mask=inside)
    new = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=inside)
    h = tl.where(inside, old.to(tl.float32) + new.to(tl.float32), 0.0)  # no `other`: the padding becomes 0 here
    weight = tl.load(weight_ptr + cols * stride_w, mask=inside)
    mean_square = tl.sum(h * h) / N
    # Several warps hold each of 128 columns: after the sum all of them have loaded.
    tl.store(residual_ptr + row * stride_rm + cols * stride_rn, h, mask=inside)
    tl.store(z_ptr + row * stride_zm + cols * stride_zn, h * (weight / tl.sqrt(mean_square + eps)), mask=inside)


def add_rms_norm(x, residual, weight, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    add_rms_norm_kernel[(M,)](
        x, residual, weight, z, N, *x.stride(), *residual.stride(), *weight.stride(), *z.stride(), eps,
        BLOCK_N=triton.next_power_of_2(N),
    )  # fmt: skip
    return z
