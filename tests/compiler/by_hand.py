"""Triton's compiler, stage by stage, in this process and without its cache."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget, Language
from triton.compiler.compiler import ASTSource, make_backend

PREAMBLE = """\
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

"""
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 103, 120)


def kernels_of(path: Path, text: str):
    """The module with these kernels; Triton reads their text from the file."""
    path.write_text(PREAMBLE + text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(source: ASTSource, arch: int, **options: object) -> tuple[dict[str, str | bytes], dict]:
    """What each stage gives, by its name, and the metadata."""
    target = GPUTarget("cuda", arch, 32)
    backend = make_backend(target)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    chosen = backend.parse_options({"enable_fp_fusion": True, **options})
    stages: dict = {}
    backend.add_stages(stages, chosen, Language.TRITON)
    generation, modules = backend.get_codegen_implementation(chosen), backend.get_module_map()
    module = source.make_ir(target, chosen, generation, modules, context)
    metadata, results = {"target": target, **chosen.__dict__}, {}
    for name, stage in stages.items():
        module = stage(module, metadata)
        results[name] = module if isinstance(module, (str, bytes)) else str(module)
    return results, metadata
