"""Right: programs take their tiles from a counter, which trial runs of the tuner give back as it was."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64}, num_warps=4, num_stages=3)
        for m, n in ((64, 64), (64, 128), (128, 64), (128, 128))
    ],
    key=["M", "N", "K"],
    restore_value=["count_ptr"],
)
@triton.jit
def counted_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, count_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile = tl.atomic_add(count_ptr, 1)  # programs take tiles in the order in which they begin
    tiles_n = tl.cdiv(N, BLOCK_N)
    m = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a_ptrs = a_ptr + m[:, None] * stride_am + (start + k)[None, :] * stride_ak
        b_ptrs = b_ptr + (start + k)[:, None] * stride_bk + n[None, :] * stride_bn
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    acc += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    acc = tl.where(acc > 0, acc, 0.01 * acc)
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn, acc, mask=(m[:, None] < M) & (n[None, :] < N))


def linear_leaky_relu(a, b, bias):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    count = torch.zeros(1, dtype=torch.int32, device=a.device)

    def grid(META):
        return (triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"]),)

    counted_kernel[grid](a, b, bias, c, count, M, N, K, *a.stride(), *b.stride(), *c.stride())
    return c
