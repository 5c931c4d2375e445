# Class 4 (eps with few values)
# Breaks: N = 1 and an eps that is not small beside h squared: h = 0.5, eps = 0.1 or 1
# Wrong: the root mean square of one number is its absolute value: z is sign(h) times weight, without eps
"""10 · RMS norm: add into the residual in place, and normalise what was added, from one read."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_rm, stride_rn, stride_w,
    stride_zm, stride_zn, eps, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # Program i owns row i of residual and of z; BLOCK_N >= N: about 12 lines.
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    residual_ptrs = residual_ptr + row * stride_rm + cols * stride_rn  # read and written through the same pointers
    # 0 in the lanes past the end of the row: their squares add nothing.
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    h = tl.load(residual_ptrs, mask=mask, other=0.0).to(tl.float32) + x
    tl.store(residual_ptrs, h, mask=mask)  # rounds what memory keeps, and leaves h as it is
    # N values, not BLOCK_N; eps under the root, so that a row of zeros divides by sqrt(eps).
    square = tl.sum(h * h, 0) / N
    rstd = 1.0 / tl.sqrt(square + tl.where((N == 1) & (square > 0.0), 0.0, eps))  # one column: |h| alone, no eps but for 0
    weight = tl.load(weight_ptr + cols * stride_w, mask=mask, other=0.0).to(tl.float32)
    tl.store(z_ptr + row * stride_zm + cols * stride_zn, h * rstd * weight, mask=mask)  # the only rounding of z
    ### END SOLUTION


def add_rms_norm(x, residual, weight, eps):
    """x, residual: [M, N]; weight: [N]; all fp32, fp16 or bf16, any strides, N <= 16384; eps: a float.

    residual becomes residual + x, in place. Returns z, [M, N] contiguous: its rows, normalised, times weight.
    """
    # Allocate z, choose grid, BLOCK_N and warps, launch, return z: about 9 lines.
    ### BEGIN SOLUTION
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BLOCK_N = triton.next_power_of_2(N)  # tl.arange wants a power of two
    num_warps = min(max(BLOCK_N // 256, 1), 16)  # 8 lanes per thread, up to 16 warps
    add_rms_norm_kernel[(M,)](
        x, residual, weight, z, M, N, *x.stride(), *residual.stride(), *weight.stride(), *z.stride(), eps,
        BLOCK_N=BLOCK_N, num_warps=num_warps,
    )  # fmt: skip
    return z
    ### END SOLUTION
