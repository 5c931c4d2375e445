"""Machine code of a kernel, on a machine without a GPU: what claims about the compiler are held to."""

from __future__ import annotations

from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

RELEASE = tuple(int(part) for part in triton.__version__.split(".")[:2])


def compiled(
    kernel: Any, types: str, aligned: bool = False, num_warps: int = 4, arch: int = 90, **constants: Any
) -> dict[str, Any]:
    """Returns the texts and the cubin of a kernel for sm_90, or another `arch`, by their names: ttgir, ptx, cubin ...

    types: those of the parameters that are no constants, in their order. aligned: each of these is a multiple of 16.
    """
    kinds = iter(types.split())
    signature = {name: "constexpr" if name in constants else next(kinds) for name in kernel.arg_names}
    given = [place for place, kind in enumerate(signature.values()) if kind != "constexpr"]
    attributes = {(place,): [["tt.divisibility", 16]] for place in given} if aligned else {}
    source = ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": num_warps}).asm
