"""Triton's private names with which a kernel's text is made, for this room and the rooms above it.

Here stands what the front end imports, reads, calls or replaces, except for the visitor of a kernel's tree: it stands
in front_end/triton_visitor_api.py. What only launches, autotuning and machine code take stands in child/triton_api.py,
and the rules of a launch in wire/launch_abi.py. A port to a new Triton begins with these four. Each name holds for
Triton 3.6 to 3.9, unless its comment says otherwise; the language (tl) and triton.jit are public, and not listed.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dis import get_instructions
from types import FunctionType
from typing import Any

import triton


@contextlib.contextmanager
def of_a_known_release(file: str) -> Iterator[None]:
    """Makes an import of a name that Triton lacks say which release this is, and which file says what the name is."""
    try:
        yield
    except ImportError as error:
        raise _lacking(str(error), file) from error


def check_members(members: Mapping[Any, Iterable[str]], file: str) -> None:
    """Raises ImportError for a member of one of Triton's modules or classes that this release lacks, as above."""
    for owner, names in members.items():
        for name in names:
            if not _has(owner, name):
                raise _lacking(f"{owner.__name__} has no {name}", file)


def _has(owner: Any, name: str) -> bool:
    """Returns whether a module or a class has this member, or a method of the class gives it to an object."""
    return hasattr(owner, name) or name in _set_by_methods(owner)


@functools.cache
def _set_by_methods(owner: Any) -> frozenset[str]:
    methods = (method for method in vars(owner).values() if isinstance(method, FunctionType))
    lines = (line for method in methods for line in get_instructions(method))
    return frozenset(line.argval for line in lines if line.opname == "STORE_ATTR")


def _lacking(message: str, file: str) -> ImportError:
    return ImportError(f"Triton {triton.__version__} is not known here: {message}. See grader/{file}", name="triton")


with of_a_known_release("front_end/triton_text_api.py"):
    from triton._C.libtriton import ir, passes
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler.compiler import ASTSource, make_backend
    from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
    from triton.language import core
    from triton.language.core import base_value, tensor_descriptor_base
    from triton.runtime.jit import JITCallable, JITFunction

__all__ = [  # what is imported from here
    "ASTSource",  # (function, signature, constants, attributes): a kernel to be compiled
    "CUDABackend",  # the backend of NVIDIA's GPUs
    "CompilationError", "CompileTimeAssertionFailure",  # .src, .node, .error_message
    "GPUTarget",  # (backend, arch, threads of a warp)
    "JITCallable",  # of triton.jit and triton.constexpr_function
    "JITFunction",  # of triton.jit
    "base_value", "tensor_descriptor_base",  # classes of a kernel's values
    "core",  # the module of tl.load and tl.store, which messages about descriptors look for
    "ir", "passes",  # MLIR: modules and their passes
    "make_backend",  # of a GPUTarget
    "check_members", "of_a_known_release", "sign", "target_here",
]  # fmt: skip

MEMBERS: dict[Any, tuple[str, ...]] = {
    ir: ("context", "load_dialects", "pass_manager", "builder"),
    passes.common: ("add_inliner",),
    CUDABackend: (
        "parse_options",  # (dict) -> options as an object; "debug" and "sanitize_overflow" are among them
        "load_dialects",  # (context)
        "get_codegen_implementation",  # (options) -> functions by name; replaced: "min_dot_size" allows any size
        "get_module_map",  # () -> modules by name
    ),
    ASTSource: (
        "fn", "signature", "constants", "attrs",
        "make_ir",  # (target, options, functions, modules, context) -> module
    ),
    JITCallable: (
        "fn",  # the function; replaced by an evaluator in constexpr functions
        "src",  # the text, from "def" on
        "signature",  # see sign
        "parse",  # () -> tree; replaced: a function is parsed once
    ),
}  # fmt: skip
check_members(MEMBERS, "front_end/triton_text_api.py")


def target_here() -> GPUTarget:
    """Returns the target of the active driver."""
    return triton.runtime.driver.active.get_current_target()


def sign(made: JITCallable, function: FunctionType) -> None:
    """Gives what was made of a function the function's signature, which may have changed since it was made.

    Triton 3.6 asks the function for it in each call, 3.9 keeps it.
    """
    made.signature = inspect.signature(function)
