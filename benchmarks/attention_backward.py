"""Exercise 27 beside torch's own backward pass, in turns in one process, with other tiles and stages. Needs a GPU.

    python benchmarks/attention_backward.py

Each variant is compared with torch's gradients first, and told as wrong where it differs: docs/compiler_race.md says
how that may come about. FLOPs are those of the five products that are due: 10 B H M N D.
"""

from __future__ import annotations

import importlib.util
import random
import statistics
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

import torch
import triton
from attention import BACKENDS, ROUNDS
from gpu_time import milliseconds
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

ROOT = Path(__file__).resolve().parents[1]
SOLUTION = ROOT / "solutions/27_flash_backward/flash_backward.py"
SHAPES = ((1, 4, 1024, 128), (4, 16, 4096, 64), (4, 32, 4096, 128))
TILES = ((64, 64, 4), (32, 64, 4), (64, 128, 8))  # queries, keys, warps
STAGES = (1, 2, 3)  # of the loop over queries
WRONG = 0.01  # of the largest element
OF_DK = "num_warps=4, num_stages=2,\n    )  # fmt: skip\n    attention_dq_kernel"  # in the solution


def variant(folder: str, rows: int, keys: int, warps: int, stages: int):
    text = SOLUTION.read_text(encoding="utf-8")
    for old, new in (
        ("BLOCK_M = 64", f"BLOCK_M = {rows}"), ("BLOCK_N = 64", f"BLOCK_N = {keys}"),
        (OF_DK, OF_DK.replace("num_warps=4, num_stages=2", f"num_warps={warps}, num_stages={stages}")),
    ):  # fmt: skip
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = Path(folder) / f"backward_{rows}_{keys}_{warps}_{stages}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.attention_backward


def worst(found: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]) -> dict[str, float]:
    """The largest difference of each result, as a share of its largest element."""
    pairs = zip(("dq", "dk", "dv"), found, expected)
    return {name: ((a.float() - b).abs().max() / b.abs().max()).item() for name, a, b in pairs}


def measure(folder: str, shape: tuple[int, int, int, int]) -> None:
    B, H, S, D = shape
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16).requires_grad_() for _ in range(3))
    do, runs = torch.randn(shape, device="cuda", dtype=torch.float16), {}
    for name, backend in BACKENDS.items():
        with sdpa_kernel(backend):
            o = scaled_dot_product_attention(q, k, v)
        runs[name] = lambda o=o: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
    expected = tuple(one.float() for one in runs[next(iter(BACKENDS))]())
    with torch.no_grad():
        lse = torch.stack([torch.logsumexp(a.float() @ b.float().mT * D**-0.5, -1)
                           for a, b in zip(q.flatten(0, 1), k.flatten(0, 1))]).view(B, H, S)  # fmt: skip
    given = *(one.detach() for one in (q, k, v, o)), lse, do
    for (rows, keys, warps), stages in product(TILES, STAGES):
        entry = variant(folder, rows, keys, warps, stages)
        runs[f"{rows} x {keys}, {warps} warps, {stages} stages"] = lambda entry=entry: entry(*given)
    print(f"B H S D = {B} {H} {S} {D}, fp16:")
    times = {name: statistics.median(found) for name, found in _in_turns(_right(runs, expected)).items()}
    for name, found in times.items():
        shares = ", ".join(f"{times[other] / found:.2f} of {other}" for other in BACKENDS if other in times)
        print(f"  {name:32} {10 * B * H * S * S * D / found / 1e9:4.0f} TFLOP/s, {found:.3f} ms: {shares}", flush=True)


def _right(runs: dict[str, Callable], expected: tuple[torch.Tensor, ...]) -> dict[str, Callable]:
    """Returns the variants that give the right gradients, and prints what each of the others does."""
    usable = {}
    for name, run in runs.items():
        try:
            differs = {result: share for result, share in worst(run(), expected).items() if not share < WRONG}
        except (RuntimeError, triton.runtime.errors.OutOfResources) as error:
            print(f"  {name:32} does not run: {str(error).splitlines()[0]}")
            continue
        if differs:
            print(f"  {name:32} WRONG: " + ", ".join(f"{one} by {share:.3g}" for one, share in differs.items()))
        else:
            usable[name] = run
    return usable


def _in_turns(runs: dict[str, Callable]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name in random.sample(list(runs), len(runs)):
            times[name].append(milliseconds(runs[name]))
    return times


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here.")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            measure(folder, shape)


if __name__ == "__main__":
    main()
