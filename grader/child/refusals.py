"""Torch allocates, fills and views; the kernels do the work. Everything else that torch could do is refused.

Two of torch's own modes see every operation: the function mode knows what the learner wrote (`torch.softmax`,
`.contiguous()`), the dispatch mode knows what would really happen (`aten::clone`), and decides. So `.contiguous()` is
fine where it copies nothing. A refusal is recorded as well as raised, so that no `except` can hide it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import triton
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
FILLED = {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"}
FILLS = {"fill_", "zero_"}
READS = {"numpy", "tolist", "__array__", "__dlpack__"}  # the values leave torch, and the dispatcher does not see it
PRINTS = {"__repr__", "__format__"}  # `print(x)` computes, but only a text
OPERATORS = {
    "add": "+", "sub": "-", "rsub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&", "or": "|",
    "xor": "^", "invert": "~", "neg": "-", "getitem": "[...]", "setitem": "[...] =",
}  # fmt: skip
MOST_RECORDS = 64
TRITON_FOLDER = os.path.dirname(os.path.abspath(triton.__file__)) + os.sep


class TorchRefused(RuntimeError):
    """The host function asked torch to do work."""


class Refusals:
    """What was refused in one call of the entry function. `allocated` and `filled` are told of the memory made."""

    def __init__(self, learner_file: str, allocated: Callable = lambda *_: None, filled: Callable = lambda *_: None):
        self.learner_file = learner_file
        self.allocated, self.filled = allocated, filled
        self.records: list[dict] = []
        self.functions: list[str] = []  # the torch functions being called, the learner's own first

    def refuse(self, operation: str, line: int) -> None:
        record = {"operation": operation, "line": line}
        if record not in self.records and len(self.records) < MOST_RECORDS:
            self.records.append(record)
        raise TorchRefused(f"{operation} is refused here: torch may allocate, fill and view; the kernel has to compute")

    def line_of_caller(self) -> int:
        """The learner's line that asked for the operation, 0 if Triton itself did."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.learner_file:
                return frame.f_lineno
            if frame.f_code.co_filename.startswith(TRITON_FOLDER):
                return 0
            frame = frame.f_back
        return 0

    @contextmanager
    def on(self) -> Iterator[None]:
        with _Functions(self), _Operations(self):
            yield


class _Functions(TorchFunctionMode):
    def __init__(self, refusals: Refusals):
        super().__init__()
        self.refusals = refusals

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in PRINTS:
            with _NoModes():
                return function(*args, **(kwargs or {}))
        if name in READS and (line := self.refusals.line_of_caller()):
            self.refusals.refuse(_as_written(function), line)
        self.refusals.functions.append(_as_written(function))
        try:
            return function(*args, **(kwargs or {}))
        finally:
            self.refusals.functions.pop()


class _Operations(TorchDispatchMode):
    def __init__(self, refusals: Refusals):
        super().__init__()
        self.refusals = refusals

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation._schema.name.removeprefix("aten::")
        kwargs = kwargs or {}
        result_or_view = name in EMPTY or name in FILLED or getattr(operation, "is_view", False)
        is_fill = name in FILLS and not any(isinstance(value, torch.Tensor) for value in args[1:])
        if not (result_or_view or is_fill or name == "set_") and (line := self.refusals.line_of_caller()):
            functions = self.refusals.functions
            self.refusals.refuse(functions[0] if functions else f"aten.{name}", line)
        result = operation(*args, **kwargs)
        if name in EMPTY or name in FILLED:
            self.refusals.allocated(result, initialised=name in FILLED)
        elif is_fill:
            self.refusals.filled(args[0])
        return result


class _NoModes(torch._C._DisableTorchDispatch):
    """Operations inside are not looked at."""


def _as_written(function) -> str:
    """A torch function as a learner writes it: torch.softmax, .contiguous(), x @ y."""
    name = getattr(function, "__name__", "?")
    if name == "__get__":  # a property
        return f".{getattr(function.__self__, '__name__', '?')}"
    bare = name.strip("_")
    if name.startswith("__"):
        for operator in (bare, bare[1:]):  # __radd__, __iadd__
            if operator in OPERATORS:
                return f"the operator {OPERATORS[operator]}"
    owner = getattr(function, "__objclass__", None) or getattr(function, "__qualname__", name).partition(".")[0]
    if owner in ("Tensor", "TensorBase", "_TensorBase") or isinstance(owner, type):
        return f".{name}()"
    module = getattr(function, "__module__", None) or "torch"
    return f"{'torch' if module.startswith('torch._') else module}.{name}"
