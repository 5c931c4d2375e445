"""The reference of one's own kernel: a file with one function in torch, or with a class as benchmarks of kernels have.

    def leaky_relu(x, slope=0.1):            class Model(torch.nn.Module):
        return torch.where(x > 0, x, ...)        def forward(self, x): ...
                                             def get_inputs(): return [torch.rand(128, 4096)]

It is the user's own, and trusted as an exercise's tests are: it says what is right. What can be wrong with it is found
here, and told before the kernel is blamed.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from grader.numerics.arguments import Argument
from grader.numerics.torchs_rounding import as_written
from grader.own.cannot_judge import CannotJudge, message_of
from grader.wire.printable import one_line

CASTS = {"float", "half", "bfloat16"}  # methods of tensors
LIMIT = 20  # seconds of a core for one call of a reference
ROUNDED = (torch.float32, torch.float16, torch.bfloat16)
OF_BENCHMARKS = ("calls", "get_inputs", "get_init_inputs")  # functions of a file that are no reference
EXAMPLE = "def reference(x): return torch.relu(x)"


@dataclass
class OwnReference:
    """A reference. `function` takes the arguments by position. `defaults`: the numbers that its signature states, by
    name. `results`: the names that its text gives to what it returns, () where it gives none.

    `changed`: the names of the arguments that the kernel changes in place, or fills.
    """

    path: Path
    name: str
    function: Callable
    arguments: list[str]
    defaults: dict[str, Any]
    results: tuple[str, ...]
    calls: Callable[[], Sequence] | None = None  # states calls
    inputs: Callable[[], Sequence] | None = None  # get_inputs of a benchmark
    changed: tuple[str, ...] = ()
    shapes: str = ""  # SHAPES of the file, a line as for --shapes
    is_widened: bool = field(default=False, init=False)  # torch cannot run it in some dtype: it ran in fp32

    def exactly(self, *arguments: Argument) -> list[torch.Tensor]:
        """Returns what it computes in float64, whichever dtypes its text names. Raises CannotJudge."""
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with _InDouble():
                found = self._results(arguments)
        finally:
            torch.set_default_dtype(default)
        return [one.double() if one.is_floating_point() else one for one in found]

    def as_written(self, *arguments: Argument) -> list[torch.Tensor]:
        """Returns what torch computes in the dtypes of these arguments, or in fp32 where torch has no such operation in
        a dtype of 16 bits: see `torchs_rounding.as_written`. Raises CannotJudge."""
        tries = 0

        def results(*given: Argument) -> list[torch.Tensor]:
            nonlocal tries
            tries += 1
            return self._results(given)

        found = as_written(results, *arguments)
        self.is_widened |= tries > 1
        return found

    def _results(self, arguments: Sequence[Argument]) -> list[torch.Tensor]:
        given = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        before = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        try:
            with torch.no_grad(), within(LIMIT):
                returned = self.function(*given)
        except TookTooLong:
            raise CannotJudge(
                f"The reference {self.name} in {self.path.name} has not come to its end after {LIMIT} s of a core for"
                f" {_shapes(self.arguments, arguments)}.",
                "state smaller shapes with --shapes, or look for a loop that does not end.",
            ) from None
        except (Exception, SystemExit) as error:
            raise CannotJudge(
                f"The reference {self.name} in {self.path.name} fails{_at_line(error, self.path)} with"
                f" {message_of(error)} for {_shapes(self.arguments, arguments)}.",
                "mend it, or state other shapes with --shapes.",
            ) from None
        self._refuse_changes(given, before)
        found = [given[self.arguments.index(name)] for name in self.changed] if returned is None else returned
        several = list(found) if isinstance(found, tuple | list) else [found]
        if not several or not all(isinstance(one, torch.Tensor) for one in several):
            kind = next((type(one).__name__ for one in several if not isinstance(one, torch.Tensor)), "an empty tuple")
            raise CannotJudge(
                f"The reference {self.name} in {self.path.name} returns {kind}: a tensor, or a tuple of tensors, was"
                " expected.",
                "let it return what the kernel has to compute.",
            )
        self._refuse_odd_memory(several, given)
        return [one.detach() for one in several]

    def _refuse_odd_memory(self, found: list[torch.Tensor], given: list) -> None:
        """Raises CannotJudge for a result that has no values here, as one of a GPU, or none that can be compared."""
        known = {one.device.type for one in given if isinstance(one, torch.Tensor)} | {"cpu"}
        for one in found:
            if one.layout != torch.strided or one.device.type not in known:
                kind = f"a tensor on {one.device.type}" if one.layout == torch.strided else "a sparse tensor"
                raise CannotJudge(
                    f"The reference {self.name} in {self.path.name} returns {kind}.",
                    "let it return an ordinary tensor where its arguments are, on the CPU.",
                )

    def _refuse_changes(self, given: list, before: list) -> None:
        for name, one, was in zip(self.arguments, given, before):
            has_values = isinstance(one, torch.Tensor) and not one.is_meta  # a call that is too large has none
            if has_values and name not in self.changed and not _is_same(one, was):
                raise CannotJudge(
                    f"The reference {self.name} in {self.path.name} changes {name} in place.",
                    f'write in_place = ["{name}"] into a file for --promise if the kernel changes it too; else let the'
                    f" reference work on {name}.clone().",
                )


class TookTooLong(BaseException):
    """A reference has not come to its end. No `except Exception` of its own may catch it."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Ends what takes longer; on the main thread alone, where signals arrive."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class _InDouble(TorchFunctionMode):
    """Turns every dtype of floats that a reference names into float64: `x.float()` would round what has to be exact."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in CASTS and args and isinstance(args[0], torch.Tensor):
            return args[0].double()
        args = tuple(map(_widened, args))
        return function(*args, **{key: _widened(value) for key, value in (kwargs or {}).items()})


def _widened(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in ROUNDED else value


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())


def _shapes(names: Sequence[str], arguments: Sequence[Argument]) -> str:
    """Returns "x [3, 5] fp32, slope = 0.1"."""
    parts = (
        f"{name} {list(one.shape)} {str(one.dtype).removeprefix('torch.')}" if isinstance(one, torch.Tensor)
        else f"{name} = {one}"
        for name, one in zip(names, arguments)
    )  # fmt: skip
    return ", ".join(parts)


def _at_line(error: BaseException, path: Path) -> str:
    """Returns " in line 7", the last line of the file that led to an error; "" where none did."""
    frame, line = error.__traceback__, 0
    while frame is not None:
        line = frame.tb_lineno if frame.tb_frame.f_code.co_filename == str(path) else line
        frame = frame.tb_next
    return f" in line {line}" if line else ""


# ---- reading the file ------------------------------------------------------------------------------------------------


def read_reference(path: Path, changed: tuple[str, ...] = ()) -> OwnReference:
    """Imports the file of a reference. `changed`: names of arguments that the kernel changes. Raises CannotJudge."""
    module, tree = _imported(path)
    model = _model(module)
    found = _of_function(path, module, tree) if model is None else _of_class(path, module, model, tree)
    if unknown := [name for name in changed if name not in found.arguments]:
        raise CannotJudge(
            f"The promise says that {unknown[0]} is changed, and the reference has no argument of this name.",
            f"name one of {', '.join(found.arguments)}.",
        )
    found.changed = changed
    stated = getattr(module, "SHAPES", "")
    if not isinstance(stated, str):
        raise CannotJudge(f"SHAPES in {path.name} is {type(stated).__name__}.", 'write a line as SHAPES = "M,N".')
    found.shapes = stated
    return found


def _imported(path: Path) -> tuple[ModuleType, ast.Module]:
    """Returns the module and its syntax tree. Raises CannotJudge."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        tree = ast.parse(text)
    except OSError as error:
        raise CannotJudge(
            f"The reference {path} cannot be read: {error.strerror}.", "name a file that is there."
        ) from None
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise CannotJudge(f"The reference {path} is no Python{line}: {message_of(error)}.", "mend the file.") from None
    spec = importlib.util.spec_from_file_location("own_reference_of_the_judge", path)
    if spec is None or spec.loader is None:
        raise CannotJudge(f"The reference {path} is no Python file.", "give it a name that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))  # for what stands next to it
    try:
        with within(LIMIT):
            spec.loader.exec_module(module)
    except TookTooLong:
        raise CannotJudge(
            f"The reference {path} has not been imported after {LIMIT} s of a core.",
            "let it define its function, and do nothing else that takes long.",
        ) from None
    except (Exception, SystemExit) as error:
        raise CannotJudge(
            f"The reference {path} cannot be imported{_at_line(error, path)}: {message_of(error)}.",
            "mend the file: python runs it as a module.",
        ) from None
    finally:
        sys.path.remove(str(path.parent))
    return module, tree


def _model(module: ModuleType) -> type | None:
    """Returns the class with `forward` that the file defines, Model if there are several; None without any."""
    classes = [
        one for one in vars(module).values()
        if inspect.isclass(one) and one.__module__ == module.__name__ and "forward" in vars(one)
    ]  # fmt: skip
    named = [one for one in classes if one.__name__ == "Model"]
    return next(iter(named or classes), None)


def _of_class(path: Path, module: ModuleType, model: type, tree: ast.Module) -> OwnReference:
    inputs, initial = getattr(module, "get_inputs", None), getattr(module, "get_init_inputs", None)
    try:
        instance = model(*_flat(initial() if initial else []))
    except (Exception, SystemExit) as error:
        raise CannotJudge(
            f"{model.__name__} in {path.name} cannot be made{_at_line(error, path)}: {message_of(error)}.",
            "let get_init_inputs() return what its __init__ takes, or write a function in its place.",
        ) from None
    if isinstance(instance, torch.nn.Module) and (state := [*instance.state_dict()]):
        raise CannotJudge(
            f"{model.__name__} in {path.name} has weights of its own, as {state[0]}, and the kernel is not given them.",
            "write the reference as a function that takes them as arguments.",
        )
    names, defaults = _signature(path, instance.forward)
    forward = next(
        (one for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == model.__name__
         for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "forward"), None,
    )  # fmt: skip
    return OwnReference(path, model.__name__, instance.forward, names, defaults, _returned(forward), None, inputs)


def _flat(given: Any) -> list:
    """Returns what get_init_inputs returns as a list of arguments."""
    return list(given) if isinstance(given, tuple | list) else [given]


def _of_function(path: Path, module: ModuleType, tree: ast.Module) -> OwnReference:
    functions = {
        node.name: node for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name not in OF_BENCHMARKS and not node.name.startswith("_")
    }  # fmt: skip
    chosen = [name for name in functions if name == "reference"] or list(functions)
    if len(chosen) != 1:
        found = f"several functions, {', '.join(chosen)}" if chosen else "no function"
        raise CannotJudge(
            f"The reference {path} defines {found}.",
            f"let it define one, or call one of them reference: {EXAMPLE}",
        )
    (name,) = chosen
    function = getattr(module, name, None)
    if not callable(function):
        raise CannotJudge(
            f"{name} in {path} is no function any more once it is imported.", "keep its name for it alone."
        )
    names, defaults = _signature(path, function)
    calls, inputs = getattr(module, "calls", None), getattr(module, "get_inputs", None)
    return OwnReference(path, name, function, names, defaults, _returned(functions[name]), calls, inputs)


def _signature(path: Path, function: Callable) -> tuple[list[str], dict[str, Any]]:
    """Returns the names of the arguments, and the numbers that stand as defaults. Raises CannotJudge."""
    names, defaults = [], {}
    for name, one in inspect.signature(function).parameters.items():
        if one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            raise CannotJudge(
                f"The reference in {path.name} takes {one}, and the judge hands arguments over by their places alone.",
                "write each argument by its name, without a star: the kernel's function gets the same, in this order.",
            )
        names.append(name)
        if one.default is not one.empty and (one.default is None or isinstance(one.default, bool | int | float)):
            defaults[name] = one.default
    if not names:
        raise CannotJudge(f"The reference in {path.name} takes no arguments.", f"write it as in {EXAMPLE}")
    return names, defaults


def _returned(function: ast.FunctionDef | None) -> tuple[str, ...]:
    """Returns the names in the last `return` of a function, as of `return out, lse`; () for anything else."""
    returns = [node.value for node in ast.walk(function or ast.Pass()) if isinstance(node, ast.Return)]
    last = returns[-1] if returns else None
    parts = last.elts if isinstance(last, ast.Tuple) else [last]
    names = tuple(one.id for one in parts if isinstance(one, ast.Name))
    return tuple(map(one_line, names)) if len(names) == len(parts) else ()
