"""How many elements a GPU gets wrong where the compiler keeps a place too few for tiles. Needs a Hopper GPU.

    python benchmarks/compiler_race.py

The kernel is a right product of matrices, tests/judging/split_tile.py; docs/compiler_race.md says what goes wrong.
Each row is a tile and a number of stages: the fewest and the most wrong elements of a run, for each size.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType

import torch
import triton

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ROOT / "tests" / "judging" / "split_tile.py"
AS_WRITTEN = {"LOW": 32, "BLOCK_N": 256, "BLOCK_K": 64, "WARPS": 4, "STAGES": 3}
TILES = (
    {},
    {"LOW": 16, "BLOCK_K": 32},
    {"BLOCK_N": 128},
    {"WARPS": 8},
    {"LOW": 64, "BLOCK_N": 128},  # both parts are multiplied by wgmma
)
SIZES = (512, 4096, 8192)
TIMES = 10
TOLERANCE = 0.5  # of sums of 512 to 8192 products of normal numbers; rounding makes a tenth of it


def with_constants(folder: Path, constants: dict[str, int]) -> ModuleType:
    text = KERNEL.read_text(encoding="utf-8")
    for name, number in constants.items():
        text = text.replace(f"\n{name} = {AS_WRITTEN[name]}\n", f"\n{name} = {number}\n")
    path = folder / f"split_tile_{'_'.join(map(str, constants.values()))}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wrong_elements(module: ModuleType, size: int) -> tuple[list[int], int]:
    """Returns the number of wrong elements of each run, and in how many runs the result was not that of the first."""
    torch.manual_seed(size)
    a, b = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    right = a.float() @ b.float()
    results = [module.matmul(a, b) for _ in range(TIMES)]
    wrong = [int(((one.float() - right).abs() > TOLERANCE + 0.01 * right.abs()).sum()) for one in results]
    return wrong, sum(not torch.equal(one, results[0]) for one in results)


def main() -> None:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        raise SystemExit("There is no Hopper GPU here.")
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}, {TIMES} runs each")
    with tempfile.TemporaryDirectory() as folder:
        for changed in TILES:
            for stages in (1, 2, 3, 4):
                constants = {**AS_WRITTEN, **changed, "STAGES": stages}
                module = with_constants(Path(folder), constants)
                said = [f"{64 + constants['LOW']:3} x {constants['BLOCK_N']:3} x {constants['BLOCK_K']}"]
                said += [f"{constants['WARPS']} warps", f"{stages} stages"]
                for size in SIZES:
                    try:
                        wrong, other = wrong_elements(module, size)
                    except triton.runtime.errors.OutOfResources:
                        said.append("does not fit")
                        break
                    said.append(f"{size}: {min(wrong)} to {max(wrong)} wrong, {other} runs differ")
                print("; ".join(said), flush=True)


if __name__ == "__main__":
    main()
