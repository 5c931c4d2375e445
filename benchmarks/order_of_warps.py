"""How many rows a GPU gets wrong where one warp stores what another has yet to load. Needs a GPU.

    python benchmarks/order_of_warps.py

Each kernel adds x to the residual in place and normalises the sum, as 10_rms_norm asks. With fewer columns in a tile
than the program has threads, several warps hold each column and load it for themselves. A warp that loads after the
store adds x twice, and its part of the row's sum of squares is wrong.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import torch
import triton

ROOT = Path(__file__).resolve().parents[1]
FILE = "solutions/10_rms_norm/{}/head_and_tail.py"
KERNELS = {
    "a head and a tail, as the mutant has them": (FILE.format("mistakes"), (260, 2053)),
    "the same with tl.debug_barrier()": (FILE.format("accepted"), (260, 2053)),
    "one block, stored before the sum": ("solutions/10_rms_norm/rms_norm.py", (5, 64, 100)),
}
ROWS = 140002
TIMES = 10
EPS = 1e-5
TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3}  # of the row's largest value; rounding makes a tenth of it


class WithWarps:
    """Launches a kernel with a given number of warps, whatever number its file asks for."""

    def __init__(self, kernel: triton.runtime.JITFunction, warps: int) -> None:
        self.kernel, self.warps = kernel, warps

    def __getitem__(self, grid):
        return lambda *args, **options: self.kernel[grid](*args, **{**options, "num_warps": self.warps})


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wrong_rows(module: ModuleType, n: int, dtype: torch.dtype) -> tuple[list[int], int]:
    """Returns how many rows of z were wrong each time, and how many of the residual in all."""
    torch.manual_seed(n)
    x, residual = (torch.randn(ROWS, n, device="cuda").to(dtype) for _ in range(2))
    weight = torch.randn(n, device="cuda").to(dtype)
    h = x.float() + residual.float()
    z = h * torch.rsqrt(h.square().mean(1, keepdim=True) + EPS) * weight.float()
    limit = z.abs().amax(1) * TOLERANCE[dtype]
    in_z, in_residual = [], 0
    for _ in range(TIMES):
        updated = residual.clone()
        found = module.add_rms_norm(x, updated, weight, EPS)
        in_z.append(int(((found.float() - z).abs().amax(1) > limit).sum()))
        in_residual += int((updated != h.to(dtype)).any(1).sum())
    return in_z, in_residual


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here.")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}")
    print(f"{ROWS} rows, {TIMES} times: fewest and most wrong rows of z; wrong rows of the residual in all")
    for name, (path, sizes) in KERNELS.items():
        module = load(path)
        kernel = module.add_rms_norm_kernel
        print(f"{name}:")
        for n in sizes:
            for dtype in TOLERANCE:
                for warps in (1, 4, 8, 16):
                    module.add_rms_norm_kernel = WithWarps(kernel, warps)
                    in_z, in_residual = wrong_rows(module, n, dtype)
                    said = f"z {min(in_z):4} to {max(in_z):4}, residual {in_residual}"
                    print(f"  N = {n:4}, {str(dtype)[6:]}, {warps:2} warps: {said}", flush=True)


if __name__ == "__main__":
    main()
