"""Kept out by the gate: small tiles, which read a and b far more often than they compute with them."""

import torch
import triton
import triton.language as tl


def tuning():
    """(configs, key): 4 to 24 configurations, and the arguments of the kernel for whose values each is tried."""
    # A large tile for large products, smaller ones for small products: about 8 lines.
    tiles = (  # BLOCK_M, BLOCK_N, BLOCK_K, warps
        (64, 64, 32, 4),
        (32, 64, 32, 4),
        (64, 32, 32, 4),
        (32, 32, 32, 4),
    )
    configs = [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, num_warps=warps, num_stages=4)
        for m, n, k, warps in tiles
    ]
    return configs, ["M", "N", "K"]  # each of the three decides which tile is best


def that_fit(configs, arguments, **others):
    """Those for whose pieces of a and b, fp16, shared memory has room; at least the last."""
    room = torch.cuda.get_device_properties(arguments["a_ptr"].device).shared_memory_per_block_optin
    needed = [c.num_stages * (c.kwargs["BLOCK_M"] + c.kwargs["BLOCK_N"]) * c.kwargs["BLOCK_K"] * 2 for c in configs]
    return [config for config, bytes_ in zip(configs, needed) if bytes_ <= room] or configs[-1:]


configs, key = tuning() or ([], [])


@triton.autotune(configs=configs, key=key, prune_configs_by={"early_config_prune": that_fit})
@triton.jit
def linear_leaky_relu_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    # The product, as in 05: tiles in groups of GROUP_M rows, summed along K in fp32.
    pid, tiles_m, tiles_n = tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + pid % (GROUP_M * tiles_n) % rows_in_group
    pid_n = pid % (GROUP_M * tiles_n) // rows_in_group
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # acc holds this tile of a @ b. Add the bias, apply the activation, store the tile of c: about 5 lines.
    bias = tl.load(bias_ptr + n, mask=n < N, other=0.0)  # one number per column of the tile
    acc += bias[None, :].to(tl.float32)
    acc = tl.where(acc > 0, acc, 0.01 * acc)
    c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N))  # the only rounding to fp16


def linear_leaky_relu(a, b, bias):
    """a: [M, K], b: [K, N], any strides, bias: [N], fp16. Returns c, [M, N] fp16 contiguous: leaky relu of the sums."""
    # Allocate c, write the grid as a function of the configuration, launch, return c: about 9 lines.
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)

    def grid(META):  # the block sizes are known only when a configuration is chosen
        return (triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"]),)

    linear_leaky_relu_kernel[grid](a, b, bias, c, M, N, K, *a.stride(), *b.stride(), *c.stride())
    return c
