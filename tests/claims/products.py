"""The kernels of the matrix products, compiled for sm_90 without a GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.conftest import ROOT

TILES = dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8)
DESCRIBED = dict(a_desc=(128, 64), b_desc=(64, 256), c_desc=(128, 256))  # the blocks of 22 and 23


def kernel_of(id: str, folder: Path, *change: str) -> Any:
    """Returns matmul_kernel of the solution of an exercise, with one change, by way of a file in `folder`."""
    text = (ROOT / "solutions" / id / f"{id[3:]}.py").read_text(encoding="utf-8")
    assert not change or change[0] in text
    path = folder / f"product_{abs(hash((id, change)))}.py"
    path.write_text(text.replace(*change) if change else text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.matmul_kernel


def product(
    kernel: Any,
    kinds: dict[str, str],
    capability: int = 90,
    stages: int = 4,
    options: dict | None = None,
    odd: bool = False,
    **constants: int,
) -> Any:
    """Returns a compiled product with 8 warps. kinds: the types of parameters; whole numbers are multiples of 16, or
    `odd`."""
    signature = {name: "constexpr" if name in constants else kinds.get(name, "i32") for name in kernel.arg_names}
    of_16 = [
        place for place, kind in enumerate(signature.values()) if kind.startswith("*") or kind == "i32" and not odd
    ]
    source = ASTSource(kernel, signature, constants, {(place,): [["tt.divisibility", 16]] for place in of_16})
    chosen = {"num_warps": 8, "num_stages": stages, **(options or {})}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=chosen)


def with_pointers(kernel: Any, dtype: str, contiguous_b: bool = True, **more: Any) -> Any:
    """Returns 05's kernel, compiled for row-major a and c, and a b whose neighbours lie side by side along N, or K."""
    ones = dict.fromkeys(("stride_ak", "stride_bn" if contiguous_b else "stride_bk", "stride_cn"), 1)
    return product(kernel, dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), f"*{dtype}"), **{**TILES, **ones, **more})


def with_descriptors(kernel: Any, blocks: dict[str, tuple[int, int]] = DESCRIBED, **more: Any) -> Any:
    """Returns the kernel of 22 or 23, compiled for descriptors with these blocks."""
    kinds = {name: f"tensordesc<fp16[{rows},{columns}]>" for name, (rows, columns) in blocks.items()}
    return product(kernel, kinds, **{**TILES, **more})
