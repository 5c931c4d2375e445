"""A kernel's text, which Triton's front end makes of a function and its recipe in ten milliseconds.

Triton compiles a kernel to machine code before its first launch, for a tenth to a third of a second. This text is what
is judged, and other processes make machine code of it.
"""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

from grader.front_end.triton_text_api import ASTSource, CUDABackend, GPUTarget, JITCallable, ir, make_backend
from grader.front_end.ttir_text import source_of


@cache
def _context(target: GPUTarget) -> Any:
    """Returns the context for all texts of a target: loading the dialects takes as long as a quarter of a text."""
    context = ir.context()
    ir.load_dialects(context)
    make_backend(target).load_dialects(context)
    return context


def text_of(source: ASTSource, target: GPUTarget, options: dict[str, Any]) -> bytes:
    """Returns the module in MLIR's generic form, verified, without operations that only assertions would look at.

    Raises what Triton raises.
    """
    backend, context = make_backend(target), _context(target)
    parsed = backend.parse_options(dict(options))
    if not parsed.debug:  # sums that only its assertions look at: an eighth of the front end's time
        parsed = backend.parse_options({**options, "sanitize_overflow": False})
    codegen, modules = backend.get_codegen_implementation(parsed), backend.get_module_map()
    with warnings.catch_warnings(action="ignore"):  # Triton's of the kernel's style: the file printed none of them
        return source_of(source.make_ir(target, parsed, codegen, modules, context)).encode()


@contextlib.contextmanager
def dots_of_any_size() -> Iterator[None]:
    """Lets the front end take tiles in tl.dot that are too small for a GPU's units, while the context is open."""
    before = CUDABackend.get_codegen_implementation
    loose = {"min_dot_size": lambda left, right: (1, 1, 1)}
    CUDABackend.get_codegen_implementation = lambda backend, options: before(backend, options) | loose
    try:
        yield
    finally:
        CUDABackend.get_codegen_implementation = before


def parse_each_function_once() -> None:
    """Makes Triton parse a function that several kernels call only once; the tree must stay unchanged."""
    parse = JITCallable.parse
    trees: dict[str, ast.Module] = {}

    def parse_once(function: JITCallable) -> ast.Module:
        if function.src not in trees:
            trees[function.src] = parse(function)
        return trees[function.src]

    JITCallable.parse = parse_once
