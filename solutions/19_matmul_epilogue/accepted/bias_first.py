"""Right: the accumulator begins with the bias; a key of powers of two; a hook of each configuration looks on."""

import torch
import triton
import triton.language as tl


def note(arguments):
    assert arguments["M"] > 0


configs = []
for block in (32, 64, 128):
    for warps in (4, 8):
        blocks = {"BLOCK_M": block, "BLOCK_N": 2 * block, "BLOCK_K": 64, "GROUP_M": 4}
        configs.append(triton.Config(blocks, num_warps=max(warps, block // 16), num_stages=3, pre_hook=note))


@triton.autotune(configs=configs, key=["rows", "columns", "depth"])
@triton.jit
def linear_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, rows, columns, depth, am, ak, bk, bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n, pid = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), tl.program_id(0)
    pid_m, pid_n = tl.swizzle2d(pid // tiles_n, pid % tiles_n, tiles_m, tiles_n, GROUP_M)
    m, n = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    bias = tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32) + bias
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * am + k * ak, mask=(m[:, None] < M) & (k < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * bk + n * bn, mask=(k[:, None] < K) & (n < N), other=0.0)
        acc = tl.dot(a, b, acc)
    acc *= tl.where(acc < 0, 0.01, 1.0)
    tl.store(c_ptr + m[:, None] * N + n, acc.to(tl.float16), mask=(m[:, None] < M) & (n < N))


def linear_leaky_relu(a, b, bias):
    M, N, K = a.shape[0], b.shape[1], a.shape[1]
    c = torch.empty((M, N), dtype=torch.float16, device=a.device)
    near = [triton.next_power_of_2(max(size, 1)) for size in (M, N, K)]
    linear_kernel[lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)](
        a, b, bias, c, M, N, K, *near, *a.stride(), *b.stride()
    )
    return c
