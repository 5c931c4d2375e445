"""Right: a row in a head of a power of two and a short tail; all warps have loaded before one of them stores."""

import torch
import triton
import triton.language as tl


@triton.jit
def _added(x_ptrs, residual_ptrs, mask):
    x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
    return x + tl.load(residual_ptrs, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, z_ptr, N, stride_xm, stride_xn, stride_rm, stride_rn, stride_w, eps,
    HEAD: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    head = tl.arange(0, HEAD)
    tail = HEAD + tl.arange(0, TAIL)
    first, rest = head < N, tail < N
    x_ptr += row * stride_xm
    residual_ptr += row * stride_rm
    h = _added(x_ptr + head * stride_xn, residual_ptr + head * stride_rn, first)
    squares = tl.sum(h * h, 0)
    g = _added(x_ptr + tail * stride_xn, residual_ptr + tail * stride_rn, rest)
    squares += tl.sum(g * g, 0)
    tl.debug_barrier()
    tl.store(residual_ptr + tail * stride_rn, g, mask=rest)
    tl.store(residual_ptr + head * stride_rn, h, mask=first)
    rstd = 1.0 / tl.sqrt(squares / N + eps)
    weight = tl.load(weight_ptr + head * stride_w, mask=first, other=0.0).to(tl.float32)
    tl.store(z_ptr + row * N + head, h * rstd * weight, mask=first)
    weight = tl.load(weight_ptr + tail * stride_w, mask=rest, other=0.0).to(tl.float32)
    tl.store(z_ptr + row * N + tail, g * rstd * weight, mask=rest)


def add_rms_norm(x, residual, weight, eps):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    HEAD = triton.next_power_of_2(N + 1) // 2
    TAIL = triton.next_power_of_2(N - HEAD) if N > HEAD else 1
    add_rms_norm_kernel[(M,)](
        x, residual, weight, z, N, *x.stride(), *residual.stride(), *weight.stride(), eps, HEAD=HEAD, TAIL=TAIL,
        num_warps=4 if HEAD < 2048 else 8 if HEAD < 8192 else 16,
    )  # fmt: skip
    return z
