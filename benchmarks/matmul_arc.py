"""The products of 05, 23 and 22 and their rungs next to cuBLAS, in turns in one process. Needs a GPU.

    python benchmarks/matmul_arc.py

Each call is timed alone, between two events, after 256 MB were written, so that nothing of a, b or c waits in L2, and
with a head start for the host, whose time does not count. The order is drawn anew in each round, and the median counts.
A table gives each kernel's share of the speed of cuBLAS.
"""

from __future__ import annotations

import importlib.util
import random
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
import triton
from gpu_time import milliseconds

ROOT = Path(__file__).resolve().parents[1]
KERNELS = {
    "05, tensor cores": "solutions/05_grouped_matmul/ladder/3_tensor_cores.py",
    "05, large tiles": "solutions/05_grouped_matmul/ladder/4_large_tiles.py",
    "05, the solution": "solutions/05_grouped_matmul/grouped_matmul.py",
    "05, a loop with pointers": "solutions/05_grouped_matmul/ladder/9_persistent.py",
    "23, made in the kernel": "solutions/23_descriptor_matmul/accepted/made_in_the_kernel.py",
    "23, clusters of two": "solutions/23_descriptor_matmul/accepted/clusters.py",
    "23, the solution": "solutions/23_descriptor_matmul/descriptor_matmul.py",
    "22, two plain loops": "solutions/22_persistent_matmul/accepted/two_plain_loops.py",
    "22, the solution": "solutions/22_persistent_matmul/persistent_matmul.py",
    "22, stored in halves": "solutions/22_persistent_matmul/accepted/halves.py",
}
SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 512, 8192))  # M, K, N
ROUNDS = 25
MUCH_WRONG = 1.0  # fp16 sums of up to 8192 products of normal numbers reach some hundreds


def matmul_of(path: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.matmul


def measured(kernels: dict[str, Callable], M: int, K: int, N: int) -> dict[str, float]:
    """Returns the median milliseconds of each kernel for one product, [M, K] times [K, N] in fp16."""
    a, b = (torch.randn(shape, device="cuda", dtype=torch.float16) for shape in ((M, K), (K, N)))
    expected, elsewhere = torch.matmul(a, b).float(), torch.empty(1 << 28, device="cuda", dtype=torch.int8)
    for name, matmul in kernels.items():
        difference = (matmul(a, b).float() - expected).abs().max().item()
        assert difference < MUCH_WRONG, f"{name} differs by {difference}"
    times = {name: [] for name in kernels}
    for _ in range(ROUNDS):
        for name in random.sample(list(kernels), len(kernels)):
            elsewhere.zero_()
            times[name].append(milliseconds(lambda name=name: kernels[name](a, b)))
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here.")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}, fp16")
    kernels = {"cuBLAS": torch.matmul} | {name: matmul_of(path) for name, path in KERNELS.items()}
    columns = [measured(kernels, *shape) for shape in SHAPES]
    print(f"{'share of cuBLAS at M x K x N':28}", *(f"{' x '.join(map(str, shape)):>20}" for shape in SHAPES))
    for name in kernels:
        print(f"{name:28}", *(f"{column['cuBLAS'] / column[name]:20.3f}" for column in columns))
    rates = (2 * M * K * N / column["cuBLAS"] / 1e9 for (M, K, N), column in zip(SHAPES, columns, strict=True))
    print(f"{'cuBLAS, TFLOP/s':28}", *(f"{rate:20.0f}" for rate in rates))


if __name__ == "__main__":
    main()
