"""Attention kernels of the course, or of a text that differs from them, compiled for contiguous fp16 tensors."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from tests.claims.compiled import compiled

KINDS = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "*fp16")
KINDS |= {"lse_ptr": "*fp32", "scale": "fp32", "softcap": "fp32"}


def attention(folder: Path, text: str, num_warps: int, **constants: int) -> dict[str, Any]:
    """The texts and the cubin of the kernel, with three stages. `folder`: Triton reads a kernel's lines from a file."""
    path = folder / f"attention_{len(text)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.attention_kernel
    constants |= {f"stride_{tensor}d": 1 for tensor in "qkvo"}
    types = " ".join(KINDS.get(name, "i32") for name in kernel.arg_names if name not in constants)
    return compiled(kernel, types, aligned=True, num_warps=num_warps, **constants)
