"""Exercise 25 beside torch's own attention, in turns in one process. Needs a GPU.

    python benchmarks/attention.py

Each call is timed alone, without the host's time to launch it, on tensors that are the same for all; the order is
drawn anew in each round, and the median counts. FLOPs are those of both products: 4 B H M N D.
"""

from __future__ import annotations

import importlib.util
import random
import statistics
from pathlib import Path

import torch
import triton
from gpu_time import milliseconds
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

ROOT = Path(__file__).resolve().parents[1]
SHAPES = ((4, 32, 4096, 128), (4, 16, 4096, 64))
ROUNDS = 30
RUNGS = {
    "rung 8, mask at the end": "ladder/8_mask_at_the_end_only.py",
    "rung 9, multiply-adds": "ladder/9_scale_in_the_difference.py",
    "rung 10, sums apart": "ladder/10_sums_apart.py",
}
BACKENDS = {"SDPA flash": SDPBackend.FLASH_ATTENTION, "SDPA cuDNN": SDPBackend.CUDNN_ATTENTION}


def module_of(file: str):
    spec = importlib.util.spec_from_file_location(Path(file).stem, ROOT / "solutions/25_flash_attention" / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_torch(backend: SDPBackend, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(q, k, v)


def with_tile(module, rows: int, keys: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    module.BLOCK_M, module.BLOCK_N = rows, keys
    return module.attention(q, k, v)[0]


def measure(shape: tuple[int, int, int, int]) -> None:
    B, H, S, D = shape
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3))
    module = module_of("flash_attention.py")
    tiles = {f"the solution, {rows} x {keys}": (rows, keys) for rows, keys in ((128, 64), (64, 64), (128, 128))}
    runs = {name: lambda tile=tile: with_tile(module, *tile, q, k, v) for name, tile in tiles.items()}
    rungs = {name: module_of(file) for name, file in RUNGS.items()}
    runs |= {name: lambda rung=rung: rung.attention(q, k, v)[0] for name, rung in rungs.items()}
    runs |= {name: lambda backend=backend: of_torch(backend, q, k, v) for name, backend in BACKENDS.items()}
    expected, usable = runs["SDPA flash"]().float(), {}
    for name, run in runs.items():
        try:
            difference = (run().float() - expected).abs().max().item()
        except (RuntimeError, triton.runtime.errors.OutOfResources) as error:
            print(f"  {name:26} does not run: {str(error).splitlines()[0]}")
            continue
        assert difference < 0.01, f"{name} differs by {difference}"
        usable[name] = run
    times = {name: [] for name in usable}
    for _ in range(ROUNDS):
        for name in random.sample(list(usable), len(usable)):
            times[name].append(milliseconds(usable[name]))
    print(f"B H S D = {B} {H} {S} {D}, fp16:")
    median = {name: statistics.median(found) for name, found in times.items()}
    for name, found in median.items():
        shares = ", ".join(f"{median[other] / found:.2f} of {other}" for other in BACKENDS if other in median)
        print(f"  {name:26} {4 * B * H * S * S * D / found / 1e9:4.0f} TFLOP/s, {found:.3f} ms: {shares}", flush=True)


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here.")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}")
    for shape in SHAPES:
        measure(shape)


if __name__ == "__main__":
    main()
