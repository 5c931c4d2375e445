"""Right: programs loop over the tiles, so that one grid suits every configuration; a model of the time prunes them."""

import torch
import triton
import triton.language as tl

PROGRAMS = 132


def tiles(BLOCK_M, BLOCK_N, M, N, **others):
    return triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)


@triton.autotune(
    [
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64}, num_warps=8, num_stages=3),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}, num_warps=8, num_stages=3),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=3),
    ],
    key=["M", "N", "K"],
    prune_configs_by={"perf_model": tiles, "top_k": 3},
)
@triton.jit
def walking_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        m = tile % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
        n = tile // tiles_m * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            a_mask, b_mask = (m[:, None] < M) & (k[None, :] < K), (k[:, None] < K) & (n[None, :] < N)
            a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak, mask=a_mask, other=0.0)
            b = tl.load(b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn, mask=b_mask, other=0.0)
            acc = tl.dot(a, b, acc)
        acc += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
        acc = tl.where(acc > 0.0, acc, acc * 0.01)
        c_mask = (m[:, None] < M) & (n[None, :] < N)
        tl.store(c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn, acc, mask=c_mask)


def linear_leaky_relu(a, b, bias):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (min(PROGRAMS, triton.cdiv(M, 128) * triton.cdiv(N, 256)),)
    walking_kernel[grid](a, b, bias, c, M, N, K, *a.stride(), *b.stride(), *c.stride())
    return c
