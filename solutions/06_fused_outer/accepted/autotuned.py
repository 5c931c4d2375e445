"""Right: three tiles to choose from, of other shapes and with other numbers of warps."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 128}, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=8),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 32}, num_warps=4),
    ],
    key=["M", "N"],
)
@triton.jit
def outer_relu_kernel(
    x_ptr, y_ptr, z_ptr, M, N, stride_x, stride_y, stride_zm, stride_zn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + m * stride_x, mask=m < M, other=0.0)
    y = tl.load(y_ptr + n * stride_y, mask=n < N, other=0.0)
    v = x[:, None] * y[None, :]
    z = tl.where(v < 0, tl.zeros_like(v), v)
    tl.store(z_ptr + m[:, None] * stride_zm + n[None, :] * stride_zn, z, mask=(m < M)[:, None] & (n < N)[None, :])


def outer_relu(x, y):
    M, N = x.shape[0], y.shape[0]
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)

    def grid(meta):
        return triton.cdiv(N, meta["BLOCK_N"]), triton.cdiv(M, meta["BLOCK_M"])

    outer_relu_kernel[grid](x, y, z, M, N, x.stride(0), y.stride(0), z.stride(0), z.stride(1))
    return z
