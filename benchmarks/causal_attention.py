"""Exercise 26 beside torch's own attention, and with a window, a cap and shared heads. Needs a GPU.

    python benchmarks/causal_attention.py

Each call is timed alone, without the host's time to launch it, on tensors that are the same for all; the order is
drawn anew in each round, and the median counts. FLOPs are those of the pairs that are seen: 4 B H D for each.
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
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

ROOT = Path(__file__).resolve().parents[1]
B, H, HK, S, D, WINDOW, CAP = 1, 32, 8, 8192, 128, 1024, 50.0
ROUNDS = 30
FILES = {
    "the solution": "solutions/26_causal_attention/causal_attention.py",
    "all tiles visited": "solutions/26_causal_attention/unwanted.py",
    "mask on cut tiles only": "solutions/26_causal_attention/accepted/cut_tiles_last.py",
}
BACKENDS = {"SDPA flash": SDPBackend.FLASH_ATTENTION, "SDPA cuDNN": SDPBackend.CUDNN_ATTENTION}


def attention_of(file: str) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    spec = importlib.util.spec_from_file_location(Path(file).stem, ROOT / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.attention


def of_torch(backend: SDPBackend, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(q, k, v, is_causal=True)


def pairs(window: int | None) -> int:
    """How many keys all queries of a head see together."""
    hidden = 0 if window is None else (S - window) * (S - window + 1) // 2
    return S * (S + 1) // 2 - hidden


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here.")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}")
    q, k, v = (torch.randn(B, H, S, D, device="cuda", dtype=torch.float16) for _ in range(3))
    shared = k[:, :HK], v[:, :HK]
    solution, files = attention_of(FILES["the solution"]), {name: attention_of(file) for name, file in FILES.items()}
    runs = {name: (lambda run=run: run(q, k, v)[0], None) for name, run in files.items()}
    runs |= {
        f"{HK} heads of keys": (lambda: solution(q, *shared)[0], None),
        f"a cap of {CAP:g}": (lambda: solution(q, k, v, None, CAP)[0], None),
        f"a window of {WINDOW}": (lambda: solution(q, k, v, WINDOW)[0], WINDOW),
        f"that window, {HK} heads of keys": (lambda: solution(q, *shared, WINDOW)[0], WINDOW),
    }
    runs |= {name: (lambda backend=one: of_torch(backend, q, k, v), None) for name, one in BACKENDS.items()}
    expected = runs["SDPA flash"][0]().float()
    for name in (*FILES, "SDPA cuDNN"):
        difference = (runs[name][0]().float() - expected).abs().max().item()
        assert difference < 0.01, f"{name} differs by {difference}"
    times = {name: [] for name in runs}
    for round_ in range(ROUNDS + 1):
        for name in random.sample(list(runs), len(runs)):
            taken = milliseconds(runs[name][0])
            times[name] += [taken] if round_ else []  # in the first one kernels are compiled
    print(f"B H S D = {B} {H} {S} {D}, fp16, causal:")
    for name, (_, window) in runs.items():
        median = statistics.median(times[name])
        rate = 4 * B * H * D * pairs(window) / median / 1e9
        print(f"  {name:28} {rate:4.0f} TFLOP/s, {median:.3f} ms", flush=True)


if __name__ == "__main__":
    main()
