"""The functions of exercises' files, with kernels in them that torch can trace."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from torch.library import wrap_triton
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction


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
        elif isinstance(value, JITFunction) or (isinstance(value, Autotuner) and not _interpreted(value)):
            with contextlib.suppress(Exception):  # an older torch wraps no autotuner that prunes: it stays bare
                namespace[key] = wrap_triton(value)
        elif isinstance(value, Autotuner):
            value.configs = value.configs[:1]  # there is no GPU on which they could be timed
    return namespace[name]


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"story_{path.parent.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _with_globals(function: FunctionType, namespace: dict[str, Any]) -> FunctionType:
    made = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _interpreted(kernel: object) -> bool:
    while isinstance(kernel, Autotuner):
        kernel = kernel.fn
    return isinstance(kernel, InterpretedFunction)
