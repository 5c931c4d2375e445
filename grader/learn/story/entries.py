"""The functions of exercises' files, with kernels in them that torch can trace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import triton
from torch.library import wrap_triton


def entry_of(path: Path, name: str) -> Callable:
    """Imports a file and returns its function of this name, ready for an operator. Raises what the import raises, and
    AttributeError.

    The host functions get a namespace of their own, in which kernels are wrapped. The file's own stays as it is, since
    kernels find there the functions that they call.
    """
    module = _imported(path)
    getattr(module, name)
    namespace = dict(vars(module))
    for key, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            namespace[key] = _with_globals(value, namespace)
        elif isinstance(value, triton.JITFunction) or _is_tuned(value) and not _is_interpreted(value):
            with contextlib.suppress(Exception):  # an older torch wraps no autotuner that prunes: it stays bare
                namespace[key] = wrap_triton(value)
        elif _is_tuned(value):
            value.configs = value.configs[:1]  # there is no GPU on which they could be timed
    return namespace[name]


def _imported(path: Path) -> ModuleType:
    name = f"story_{path.parent.name}"
    module = ModuleType(name)
    module.__file__ = str(path)
    SourceFileLoader(name, str(path)).exec_module(module)
    return module


def _with_globals(function: FunctionType, namespace: dict[str, Any]) -> FunctionType:
    made = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _is_tuned(value: object) -> bool:
    return isinstance(value, triton.KernelInterface) and hasattr(value, "configs")


def _is_interpreted(tuned: Any) -> bool:
    """Returns whether Triton's interpreter carries an autotuned kernel out: then no kernel of the compiler is in it."""
    while isinstance(tuned, triton.KernelInterface) and not isinstance(tuned, triton.JITFunction):
        tuned = tuned.fn
    return not isinstance(tuned, triton.JITFunction)
