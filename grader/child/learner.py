"""The learner's file: importing it, calling its entry function, and describing what went wrong.

Whatever goes wrong in here is the learner's: each exception becomes data that the parent can put into a sentence, with
the line of their file and no traceback of ours.
"""

from __future__ import annotations
import __future__

import ast
import functools
import importlib.util
import inspect
import linecache
import operator
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from types import ModuleType
from typing import Any

from grader.child.torch_refusals import NotRecordable
from grader.child.triton_api import OutOfResources, with_its_number
from grader.front_end.compile_failure import compile_failure, cut, text_of
from grader.front_end.triton_text_api import CompilationError
from grader.wire.messages import Failure

MOST_NAMES = 64
NO_VALUES = ("meta", "no data")  # torch.equal, .item(), print(x.cpu()) ... of tensors without memory
NO_VALUES_TYPES = (RuntimeError, NotImplementedError, TypeError, ValueError)
LIBRARIES = ("torch", "triton")
NO_MEMORY = ("can't allocate memory", "out of memory", "not enough memory")


class Rejected(Exception):
    """The file cannot be called as the exercise demands."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


class LearnerFile:
    """The learner's file, imported where no tensor has values.

    Statements that try the kernels out there and look at values fail, and so may all statements after a launch, whose
    results are missing. They are left out.
    """

    def __init__(self, filename: str, source: bytes):
        name = os.path.basename(filename) or "submission.py"
        self.path = os.path.join(os.getcwd(), name)
        self.stem = os.path.splitext(name)[0]
        self.source = source
        self.module: ModuleType | None = None
        self.launched = False  # while the file was imported

    def load(self) -> Failure | None:
        try:
            self.source.decode("utf-8")
        except UnicodeDecodeError as error:
            return Failure("encoding", type(error).__name__, cut(str(error)))
        with open(self.path, "wb") as file:  # a full disk is the machine's fault: it is not caught here
            file.write(self.source)
        try:
            linecache.clearcache()  # Triton reads a kernel's source from there; it may hold another file's
            spec = importlib.util.spec_from_file_location(self.stem, self.path)
            if spec is None:
                raise ImportError(f"{self.path} is no Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[self.stem] = module  # where inspect, and so Triton, looks for the source
            self._run(self._statements, vars(module))
        except BaseException as error:  # a learner's file may raise anything, SystemExit too
            sys.modules.pop(self.stem, None)
            return self.failure(error, "load")
        self.module = module
        return None

    def constants(self) -> dict[str, int]:
        """Returns the module's integers with upper-case names, as BLOCK_M, by name."""
        names = vars(self.module).items() if self.module else ()
        constants = {name: value for name, value in names if name.isupper() and type(value) is int}
        return {name: value for name, value in list(constants.items())[:MOST_NAMES] if abs(value) < 1 << 48}

    def entry(self, name: str, arguments: int) -> Callable[..., Any]:
        """Returns the entry function. Raises Rejected if it is missing or does not take this many arguments."""
        entry: Callable[..., Any] | None = getattr(self.module, name, None)
        if not callable(entry):
            raise Rejected("no-entry", f"{self.stem}.py defines no function {name}")
        try:
            signature = inspect.signature(entry)
        except (TypeError, ValueError):
            return entry
        try:
            signature.bind(*range(arguments))
        except TypeError:
            takes = len(signature.parameters)
            plural = "" if takes == 1 else "s"
            raise Rejected(
                "arity", f"{name} takes {takes} argument{plural}, the grader calls it with {arguments}"
            ) from None
        return entry

    @contextmanager
    def with_constants(self, constants: dict[str, int]) -> Iterator[None]:
        """Sets these module constants for a while, where the file has them, and what it derives from them at import."""
        names = vars(self.module)
        changed = constants.keys() & names.keys()
        derived = list(self._derived(changed))
        before = {name: names[name] for name in changed if name in names}  # no other: a file may keep state
        names.update({name: constants[name] for name in constants.keys() & names.keys()})
        try:
            self._run(derived, names)
            yield
        finally:
            names.update(before)

    def _run(self, statements: list[ast.stmt], names: dict[str, Any]) -> None:
        for number, statement in enumerate(statements):
            if number and _is_text(statement):
                continue  # it would become the file's docstring
            code = compile(ast.Module([statement], []), self.path, "exec", self._flags, dont_inherit=True)
            try:
                exec(code, names)
            except Exception as error:
                self.launched |= _wants_values(error)
                if _is_needed(statement) or not self.launched:
                    raise

    @cached_property
    def _statements(self) -> list[ast.stmt]:
        return ast.parse(self.source, self.path).body

    @cached_property
    def _flags(self) -> int:
        """The compiler's flags that `from __future__ import` sets for a whole file."""
        imports = [one for one in self._statements if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
        features = [getattr(__future__, alias.name).compiler_flag for statement in imports for alias in statement.names]
        return functools.reduce(operator.or_, features, 0)

    def _derived(self, changed: set[str]) -> Iterator[ast.stmt]:
        """Yields the file's assignments that use one of the changed names, in order, as HALF = BLOCK_N // 2.

        Adds the names that they assign to `changed`.
        """
        for statement, used, stored in self._assignments if changed else ():
            if used & changed and not stored & changed:
                changed |= stored
                yield statement

    @cached_property
    def _assignments(self) -> list[tuple[ast.stmt, set[str], set[str]]]:
        """The file's assignments, each with the names that it uses and the names that it assigns."""
        assignments: list[tuple[ast.stmt, set[str], set[str]]] = []
        for statement in self._statements:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                stored = {name for target in targets for name in _names_in(target)}
                assignments.append((statement, _names_in(statement), stored))
        return assignments

    # ---- failures ---------------------------------------------------------------------------------------

    def failure(self, error: BaseException, stage: str) -> Failure:
        """Returns the description of an exception; stage: "load" or "host". Raises faults of the machine again."""
        if not self._comes_from_here(error) and _is_of_the_machine(error):
            raise error  # a fault of the machine is no failure of the file
        if isinstance(error, CompilationError):
            return compile_failure(error, ast.parse(self.source))  # of a kernel that a host function asked about
        line, message = self._last_line(error), with_its_number(error, text_of(error))
        kind = _special_kind(error, message) or stage
        if isinstance(error, SyntaxError) and error.filename == self.path:
            kind, message = ("syntax" if stage == "load" else kind), str(error.msg)
            line = error.lineno or line
        return Failure(kind, type(error).__name__, cut(message), line)

    def _comes_from_here(self, error: BaseException) -> bool:
        """Returns whether the learner's own line raised it, and not a line of a library that it called."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        return trace is None or trace.tb_frame.f_code.co_filename == self.path

    def _last_line(self, error: BaseException) -> int:
        line, trace = 0, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.path:
                line = trace.tb_lineno
            trace = trace.tb_next
        return line


def _names_in(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_needed(statement: ast.stmt) -> bool:
    """Returns whether a statement defines or imports something, or is there to fail."""
    return isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Raise))


def _wants_values(error: BaseException | None) -> bool:
    """Returns whether torch reports that a tensor has no memory, or a stand-in that nothing runs here."""
    if error is None:
        return False
    is_known = isinstance(error, NO_VALUES_TYPES) and any(text in str(error) for text in NO_VALUES)
    return is_known or isinstance(error, NotRecordable) or _wants_values(error.__cause__)


def _special_kind(error: BaseException, message: str) -> str:
    if isinstance(error, OutOfResources):
        return "resources"
    if isinstance(error, Rejected):
        return error.kind
    if isinstance(error, SystemExit):
        return "exit"
    if isinstance(error, ImportError):
        return "import"
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, NotRecordable):
        return "not-recordable"
    if isinstance(error, RuntimeError) and any(text in message for text in NO_MEMORY):
        return "memory"
    return ""


def _is_of_the_machine(error: BaseException) -> bool:
    """Returns whether the torch or triton installation is broken."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0] in LIBRARIES
    return isinstance(error, FileNotFoundError) and any(f"/{name}/" in str(error.filename) for name in LIBRARIES)
