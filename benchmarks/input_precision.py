"""Products of fp32 in tf32, tf32x3 and ieee: how fast, and how exact. Needs a GPU.

    python benchmarks/input_precision.py

One product, 4096 x 4096 x 4096 of normal numbers; the error is against float64. For each precision the tiles below are
tried, and the fastest is shown.
"""

from __future__ import annotations

import statistics

import torch
import triton
import triton.language as tl
from gpu_time import milliseconds

SIZE, GROUP_M, CALLS = 4096, 8, 7
TILES = ((128, 256, 32, 8, 4), (128, 128, 32, 8, 3), (128, 64, 32, 8, 3), (64, 64, 32, 4, 3))  # then warps, stages


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The kernel of 05 for contiguous matrices whose sizes are multiples of the blocks."""
    pid = tl.program_id(0)
    programs_per_group = GROUP_M * (N // BLOCK_N)
    m = (pid // programs_per_group * GROUP_M + pid % GROUP_M) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid % programs_per_group // GROUP_M * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


def show(name: str, tile: str, time: float, c: torch.Tensor, exact: torch.Tensor) -> None:
    error = (c.double() - exact).abs().max().item()
    print(f"{name:26} {tile:28} {2 * SIZE**3 / time / 1e9:5.0f} TFLOP/s, largest error {error:.1e}", flush=True)


def fastest(precision: str, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[float, str]:
    """Returns the milliseconds of the fastest tile that fits the GPU, and its text. c holds the product afterwards."""
    times = {}
    for m, n, k, warps, stages in TILES:
        blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": GROUP_M, "PRECISION": precision}
        options = {"num_warps": warps, "num_stages": stages}

        def run(grid=(SIZE // m * (SIZE // n),), options=blocks | options):
            matmul_kernel[grid](a, b, c, SIZE, SIZE, SIZE, **options)

        try:
            run()
        except triton.runtime.errors.OutOfResources:
            continue
        times[f"{m} x {n} x {k}, {warps} warps"] = statistics.median(milliseconds(run) for _ in range(CALLS))
    return min((time, tile) for tile, time in times.items())


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here.")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}")
    a, b = (torch.randn(SIZE, SIZE, device="cuda") for _ in range(2))
    exact, c = a.double() @ b.double(), torch.empty_like(a)
    for precision in ("tf32", "tf32x3", "ieee"):
        time, tile = fastest(precision, a, b, c)
        show(precision, tile, time, c, exact)
    for allowed in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = allowed
        c = a @ b
        time = statistics.median(milliseconds(lambda: a @ b) for _ in range(CALLS))
        show(f"torch, tf32 allowed: {allowed}", "", time, c, exact)


if __name__ == "__main__":
    main()
