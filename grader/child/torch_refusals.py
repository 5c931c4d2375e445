"""Torch allocates, fills and views; the kernels do the work. All other operations of torch are refused.

Two of torch's own modes see every operation: the function mode knows what the learner wrote (`torch.softmax`,
`.contiguous()`), the dispatch mode knows what would really happen (`aten::clone`), and decides. So `.contiguous()` is
fine where it copies nothing. A refusal is recorded as well as raised, so that no `except` can hide it.
"""

from __future__ import annotations

import _thread
import dis
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
import torch.utils._python_dispatch
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import grader
from grader.child.printed import hidden
from grader.child.tensors import has_no_memory
from grader.wire.frames import JsonObject

EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
FILLED = {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"}
ABOUT_DTYPES = {"promote_types", "result_type", "can_cast"}
FILLS = {"fill_", "zero_"}
FILL_VALUE_AT = {"full": 1, "full_like": 1, "new_full": 2, "fill_": 1}  # its position in the arguments
# These take values out of torch, or set them from Python, unseen by the dispatcher.
READS = {"numpy", "tolist", "__array__", "__dlpack__", "apply_", "map_", "map2_", "__reduce_ex__", "__set__"}
# These read one value; without memory torch fails before the dispatcher is asked.
VALUES = {"item", "__float__", "__int__", "__bool__", "__index__", "__complex__"}
PRINTS = {"__repr__", "__format__"}  # `print(x)` computes, but only a text that the program cannot read
SUBSCRIPTS = {"__getitem__": "[...]", "__setitem__": "[...] ="}
GROUPED = re.compile(r"^(linalg|special|fft)_")  # torch's own name of torch.linalg.norm is linalg_norm
MOST_RECORDS = 64
IN_CPP = torch._C.DispatchKey.CompositeExplicitAutograd


class TorchRefused(RuntimeError):
    """The host function asked torch to do work."""


class NotRecordable(RuntimeError):
    """The host function did something that a recorded call cannot hold."""


class Refusals:
    """Refuses torch's work in one call of the entry function, and keeps the refusals.

    `allocated` and `filled` are called with memory that is made or filled, and what fills it: a number, or None for
    nothing.
    """

    def __init__(
        self,
        learner_file: str,
        allocated: Callable[..., Any] = lambda *_: None,
        filled: Callable[..., Any] = lambda *_: None,
    ):
        self.learner_file = learner_file
        self.allocated, self.filled = allocated, filled
        self.records: list[JsonObject] = []
        self.functions: list[Callable[..., Any]] = []  # the torch functions being called, the learner's own first

    def refuse(self, operation: str) -> None:
        frame = self.learners_frame()
        operation = _operator_in(frame) or operation
        record = {"operation": operation, "line": frame.f_lineno if frame else 0}
        if record not in self.records and len(self.records) < MOST_RECORDS:
            self.records.append(record)
        raise TorchRefused(f"{operation} is refused here: torch may allocate, fill and view; the kernel has to compute")

    def learners_frame(self) -> FrameType | None:
        """Returns the frame of the learner's code that is being run, None if none is."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.learner_file:
            frame = frame.f_back
        return frame

    def line(self) -> int:
        """Returns the learner's line that is being run, 0 if none is."""
        frame = self.learners_frame()
        return frame.f_lineno if frame else 0

    @contextmanager
    def on(self) -> Iterator[None]:
        with _Functions(self), _Operations(self):
            yield


class _Functions(TorchFunctionMode):
    def __init__(self, refusals: Refusals):
        super().__init__()
        self.refusals = refusals

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(function, "__name__", "")
        if name == "__format__" and args[1:] != ("",) and has_no_memory(args[0]):  # f"{x[0]:.1f}"
            self.refusals.refuse(_as_written(function))
        if name in PRINTS:
            with _NoModes():
                return hidden(function(*args, **(kwargs or {})))
        if name in READS or name in VALUES and has_no_memory(args[0]):
            self.refusals.refuse(_as_written(function))
        if function is torch.autograd.grad:  # what a formula of the file computes has names of its own
            return function(*args, **(kwargs or {}))
        self.refusals.functions.append(function)
        try:
            return function(*args, **(kwargs or {}))
        finally:
            self.refusals.functions.pop()


class _DispatchMode(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Returns False: else torch imports its compiler, 800 modules and a second or more, to keep it off the mode."""
        return False


class _Operations(_DispatchMode):
    def __init__(self, refusals: Refusals):
        super().__init__()  # type: ignore[no-untyped-call]  # torch's has no types
        self.refusals = refusals

    def __torch_dispatch__(
        self,
        operation: OpOverload,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = operation._schema.name.removeprefix("aten::")
        if not self._is_allowed(operation, name, args):
            functions = self.refusals.functions
            self.refusals.refuse(_as_written(functions[0]) if functions else f"aten.{name}")
        result = _carried_out(operation, name, args, kwargs or {})
        if name in EMPTY or name in FILLED:
            self.refusals.allocated(result, _fill_value(name, args))
        elif name in FILLS:
            self.refusals.filled(args[0], _fill_value(name, args))
        return result

    @staticmethod
    def _is_allowed(operation: OpOverload, name: str, args: tuple[Any, ...]) -> bool:
        if name in EMPTY or name in FILLED:
            return operation._overloadname != "out"
        if name in FILLS:
            return all(_is_number(value) for value in args[1:])
        asks = name in ABOUT_DTYPES or name.startswith("profiler::")
        return asks or name == "set_" or getattr(operation, "is_view", False)


def _carried_out(operation: OpOverload, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the result of an operation. For `*_like` without memory it calls torch's C++ code directly.

    Torch would use Python code there, which imports sympy, for seconds.
    """
    if (
        name.endswith("_like")
        and has_no_memory(args[0])
        and torch.device(kwargs.get("device") or "meta").type == "meta"
    ):
        return torch.ops.aten.empty_like.default._op_dk(IN_CPP, args[0], **kwargs)
    return operation(*args, **kwargs)


def _fill_value(name: str, args: tuple[Any, ...]) -> object:
    """Returns what an allocation or a fill puts in memory; None if an allocation leaves it as it was."""
    if name in EMPTY:
        return None
    if "full" in name or name == "fill_":
        return args[FILL_VALUE_AT[name]]
    return 1 if "ones" in name else 0


# Of torch's private parts: what lets operations pass by its modes.
SWITCHES: dict[Any, tuple[str, ...]] = {
    torch._C: (
        "DisableTorchFunction", "DisableTorchFunctionSubclass", "ExcludeDispatchKeyGuard",
        "_AutoDispatchBelowADInplaceOrView", "_AutoDispatchBelowAutograd", "_DisableTorchDispatch",
        "_ExcludeDispatchKeyGuard", "_ForceDispatchKeyGuard", "_IncludeDispatchKeyGuard", "_PreserveDispatchKeyGuard",
        "_SetExcludeDispatchKeyGuard", "_dispatch_tls_set_dispatch_key_excluded",
        "_dispatch_tls_set_dispatch_key_included", "_pop_torch_dispatch_stack", "_pop_torch_function_stack",
        "_set_dispatch_mode",
        "_set_skip_next_torch_function", "_skip_one_hop_torch_function", "_unset_dispatch_mode",
    ),
    torch.utils._python_dispatch: (
        "_disable_current_modes", "_disable_infra_mode", "_pop_mode", "_pop_mode_temporarily", "_unset_infra_mode",
    ),
    torch.overrides: ("_pop_mode", "_pop_mode_temporarily"),
    torch._ops.OpOverload: ("redispatch", "_op_dk"),
}  # fmt: skip
# What a tensor's memory may be asked. All else that it can do passes by torch's modes: it resizes, exchanges, copies.
OF_MEMORY = {"__len__", "data_ptr", "element_size", "get_device", "is_pinned", "is_shared", "nbytes", "size", "untyped"}
for _memory in (torch.UntypedStorage, torch.storage.TypedStorage):
    _names = (name for name in dir(_memory) if name not in OF_MEMORY and name not in dir(object))
    SWITCHES[_memory] = tuple(name for name in _names if callable(getattr(_memory, name)))
STARTS = {  # of a thread, in _thread and in threading; 3.13 knows a joinable one
    "start_new", "start_new_thread", "start_joinable_thread", "_start_new_thread", "_start_joinable_thread",
}  # fmt: skip
MAY_SWITCH = tuple(os.path.join(os.path.dirname(package.__file__ or ""), "") for package in (torch, grader))


def keep_modes_on(refuse: Callable[[str], Any]) -> None:
    """Makes torch's ways around its modes refuse all callers but torch and the grader, for the rest of this process.

    `refuse` raises. A file that goes further, into torch's own frames, can do so: docs/threat_model.md.
    """
    for owner, names in SWITCHES.items():
        for name in names:
            if hasattr(owner, name):
                setattr(owner, name, _switch(getattr(owner, name), name, refuse))


def keep_to_one_thread(refuse: Callable[[str], Any]) -> None:
    """Makes the start of a thread refuse, for the rest of this process: torch's modes are those of the main thread."""

    def start(*_: Any, **__: Any) -> None:
        refuse("the file starts a thread, which torch does not watch: what it does cannot be recorded")

    for module in (_thread, threading):
        for name in STARTS & vars(module).keys():
            setattr(module, name, start)


def _switch(original: Callable[..., Any], name: str, refuse: Callable[[str], Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        if not sys._getframe(1).f_code.co_filename.startswith(MAY_SWITCH):
            refuse(f"{name} of torch hides what the host function does")
        return original(*args, **kwargs)

    return called


class _NoModes(torch._C._DisableTorchDispatch):
    """Hides the operations inside it from torch's dispatch modes."""


def _is_number(value: object) -> bool:
    """Returns whether this is a number, or the tensor that torch makes of it in `z[:] = 0`: alone in its memory."""
    if not isinstance(value, torch.Tensor):
        return True
    return value.dim() == 0 and value.untyped_storage().nbytes() == value.element_size()


def _as_written(function: Any) -> str:
    """Returns a torch function's name as a learner writes it: torch.softmax, .contiguous(), .grad"""
    name = getattr(function, "__name__", "?")
    if name in ("__get__", "__set__"):  # a property
        return f".{getattr(function.__self__, '__name__', '?')}"
    if name in SUBSCRIPTS:
        return SUBSCRIPTS[name]
    if hasattr(function, "__objclass__") or getattr(function, "__qualname__", "").startswith("Tensor."):
        return f".{name}()"
    module = getattr(function, "__module__", None) or "torch"
    if module.startswith("torch._"):
        module = module.replace("_ops", "ops") if module.startswith("torch._ops.") else "torch"
        name = GROUPED.sub(r"\1.", name)
    return f"{module}.{name}"


def _operator_in(frame: FrameType | None) -> str:
    """Returns the operator that the frame is evaluating, "" if none: torch calls `x + y` and `x.add(y)` by one name."""
    if frame is None:
        return ""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti and instruction.opname in ("BINARY_OP", "COMPARE_OP"):
            return f"the operator {instruction.argrepr}"
    return ""
