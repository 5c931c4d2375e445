"""Right: the tile comes from two autotune configurations."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 32}, num_warps=4),
        triton.Config({"BLOCK_M": 16, "BLOCK_N": 64}, num_warps=2),
    ],
    key=["M", "N"],
)
@triton.jit
def transpose_kernel(
    x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zn, stride_zm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x_ptrs = x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn
    z_ptrs = z_ptr + n[:, None] * stride_zn + m[None, :] * stride_zm
    tile = tl.load(x_ptrs, mask=(m[:, None] < M) & (n[None, :] < N))
    tl.store(z_ptrs, tl.trans(tile), mask=(n[:, None] < N) & (m[None, :] < M))


def transpose(x):
    M, N = x.shape
    z = torch.empty((N, M), dtype=x.dtype, device=x.device)
    transpose_kernel[lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]))](
        x, z, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1)
    )
    return z
