"""Machine code of a solution's kernel, on a machine without a GPU, with any stages and for any GPU."""

from __future__ import annotations

import importlib.util
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from grader.course.folder import all_folders
from tests.conftest import ROOT


def solution(number: str) -> Any:
    """Returns the module of this exercise's solution."""
    (folder,) = (folder for folder in all_folders(ROOT) if folder.number == number)
    spec = importlib.util.spec_from_file_location(folder.solution_file.stem, folder.solution_file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled_for_fp16(
    kernel: Any, kinds: dict[str, str], arch: int = 90, stages: int = 3, warps: int = 4, **constants: Any
) -> dict[str, Any]:
    """Returns the texts and the cubin by their names: pointers lead to fp16 where kinds says nothing else.

    Each parameter that is no constant is a multiple of 16, as with contiguous tensors of a model.
    """
    usual = {name: "*fp16" if name.endswith("_ptr") else "i32" for name in kernel.arg_names} | kinds
    signature = {name: "constexpr" if name in constants else usual[name] for name in kernel.arg_names}
    given = [place for place, kind in enumerate(signature.values()) if kind not in ("constexpr", "fp32")]
    source = ASTSource(kernel, signature, constants, {(place,): [["tt.divisibility", 16]] for place in given})
    options = {"num_warps": warps, "num_stages": stages}
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options).asm


def buffers(ttgir: str) -> list[str]:
    """Returns what a loop's loads are copied to ahead of their use, in order: "1x128x64xf16" is one such tile."""
    rows = [row for row in ttgir.splitlines() if "local_alloc" in row and "mutable" in row]
    return [row.partition("memdesc<")[2].partition(",")[0] for row in rows]
