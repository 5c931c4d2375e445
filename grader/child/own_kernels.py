"""The kernels of a file without the rest of it: what the front end makes of them when nothing else has run.

Of the file only its jit functions, constexpr functions and tuples with names are defined, with Triton's imports and
public names; module constants are plain values that come with a recipe. So no host code can have changed a kernel, or
the compiler. The file lies on disk in full, at the same lines, because Triton reads a function's source from there.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import json
import linecache
import os
import re
import sys
from collections import namedtuple
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import triton
import triton.language as tl
from triton.compiler.compiler import ASTSource
from triton.runtime import JITFunction

from grader.child.front_end import Kernel
from grader.submission.kernel_names import MODULES, FileNames, all_refused, members

MOST_CANDIDATES = 8  # functions of one name
SYMBOL = re.compile(r"[A-Za-z_][\w.$]*", re.ASCII)  # what a kernel may be called on a GPU
NOT_EVALUATED = __future__.annotations.compiler_flag


class OwnKernels:
    """`handle({"kind": "own", "filename", "recipe"}, source)`: each text that a kernel of this name can have."""

    def __init__(self) -> None:
        self._read: tuple[str, bytes] = "", b""
        self._file: File | None = None

    def handle(self, header: dict, blob: bytes) -> tuple[dict, bytes]:
        if self._read != (header["filename"], blob):
            self._file, self._read = File(header["filename"], blob), (header["filename"], blob)
        texts, error = [], ""
        for function in self._file.functions(header["recipe"]["function"]):
            try:
                texts.append(self._file.text(function, header["recipe"]))
            except Exception as raised:
                said = " ".join(str(raised).split())
                error = f"{type(raised).__name__}: {said}"[:400]
        sizes = [len(text) for text in texts]
        return {"kind": "own", "sizes": sizes, "message": error}, b"".join(texts)


class File:
    def __init__(self, filename: str, source: bytes):
        self.path = os.path.join(os.getcwd(), os.path.basename(filename))
        with open(self.path, "wb") as file:
            file.write(source)
        linecache.clearcache()
        self.tree = ast.parse(source, self.path)
        if all_refused(self.tree):  # whoever asks has looked before
            raise ValueError("a kernel names what it may not")
        self.names = FileNames(self.tree)
        self.stem = os.path.splitext(os.path.basename(filename))[0]
        self.qualified = dict(_qualified(self.tree, ""))
        self._scope_of: tuple[Any, dict[str, Any]] = None, {}  # the last one, and what it was made for

    def functions(self, name: str) -> list[ast.FunctionDef]:
        return [one for one in self.names.kernels if one.name == name][-MOST_CANDIDATES:]

    def text(self, function: ast.FunctionDef, recipe: dict) -> bytes:
        """The front end's text of this function, with the recipe's types and constants. Raises what it raises."""
        target = triton.runtime.driver.active.get_current_target()
        options = {name: value for name, value in recipe["options"].items() if value is not None}
        return Kernel(self.source(function, recipe), target, options, lambda *_: None).text

    def source(self, function: ast.FunctionDef, recipe: dict) -> ASTSource:
        key = function, json.dumps([recipe["globals"], recipe["symbol"]])
        if self._scope_of[0] != key:
            self._scope_of = key, self._scope(function, recipe)
        scope = self._scope_of[1]
        kernel = scope[function.name]
        fields = {tuple(path): names for path, names in recipe["fields"]}
        constants = {
            tuple(path): _with_names(_value(said, scope), tuple(path), fields) for path, said in recipe["constants"]
        }
        attributes = {tuple(path): value for path, value in recipe["attrs"]}
        signature = {
            name: _with_names(_as_tuples(kind), (kernel.arg_names.index(name),), fields)
            for name, kind in recipe["signature"].items()
        }
        return ASTSource(kernel, signature, constants, attributes)

    def _scope(self, chosen: ast.FunctionDef, recipe: dict) -> dict[str, Any]:
        """A module's names: of functions that share one, `chosen`, or else the last."""
        module = ModuleType(self.stem)
        sys.modules[self.stem] = module  # where Triton looks for the source
        scope = vars(module)
        for name, value in self._of_triton():
            scope.setdefault(name, value)
        for name, fields in self.names.tuples.items():
            scope.setdefault(name, namedtuple(name, fields))
        for node in self.names.bodies:
            if node.name != chosen.name or node is chosen:
                scope[node.name] = self._defined(node, scope, recipe["symbol"] if node is chosen else "")
        self._add_constants(scope, recipe["globals"])
        return scope

    def _of_triton(self) -> Iterator[tuple[str, Any]]:
        """What the file imports of Triton and math, and public names of these that it gives another name."""
        found: dict[str, Any] = {}
        for node in self.names.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)) and _is_triton(node):
                with contextlib.suppress(ImportError):  # the other branch of a try
                    exec(compile(ast.Module([node], []), self.path, "exec", dont_inherit=True), found)
                    yield from ((name, value) for name, value in found.items() if name != "__builtins__")
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
                module, _, name = self.names.path(node.value).rpartition(".")
                if module in MODULES and name in members(module):
                    with contextlib.suppress(ImportError, AttributeError):
                        value = getattr(_module(module), name)
                        yield from ((target.id, value) for target in node.targets if isinstance(target, ast.Name))

    def _defined(self, node: ast.FunctionDef, scope: dict[str, Any], symbol: str) -> Any:
        """The function, where it stands in the file, under its decorator alone. Annotations stay text.

        `symbol`: what the compiler's text calls it, "" for its own name.
        """
        arguments = node.args
        plain = ast.arguments(
            arguments.posonlyargs, arguments.args, arguments.vararg, arguments.kwonlyargs,
            [_plain_default(default) for default in arguments.kw_defaults], arguments.kwarg,
            [_plain_default(default) for default in arguments.defaults],
        )  # fmt: skip
        bare = ast.FunctionDef(node.name, plain, node.body, [], node.returns, node.type_comment)
        bare = ast.fix_missing_locations(ast.copy_location(bare, node))
        if hasattr(node, "type_params"):
            bare.type_params = []
        code = compile(ast.Module([bare], []), self.path, "exec", NOT_EVALUATED, dont_inherit=True)
        before = scope.get(node.name)
        exec(code, scope)
        function: FunctionType = scope.pop(node.name)
        if before is not None:
            scope[node.name] = before
        function.__qualname__ = self.qualified[node]
        if node not in self.names.kernels:
            return triton.constexpr_function(function)
        named = {"repr": lambda _: symbol} if SYMBOL.fullmatch(symbol) else {}
        return triton.jit(**self._options(node), **named)(function)

    def _options(self, node: ast.FunctionDef) -> dict[str, Any]:
        """Of @triton.jit(noinline=True), those that change the text."""
        decorator = self.names.decorator(node, "triton.jit")
        given = decorator.keywords if isinstance(decorator, ast.Call) else []
        return {
            one.arg: one.value.value
            for one in given
            if one.arg in ("noinline", "debug") and isinstance(one.value, ast.Constant)
        }

    def _add_constants(self, scope: dict[str, Any], constants: list) -> None:
        """None takes the place of what the file itself defines."""
        own = set(scope)
        for name, is_constexpr, said in constants:
            if name not in own:
                with contextlib.suppress(ValueError):
                    value = _value(said, scope)
                    scope[name] = tl.constexpr(value) if is_constexpr else value


def _qualified(node: ast.AST, before: str) -> Iterator[tuple[ast.AST, str]]:
    """The qualified name that Python gives each function."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield inner, before + inner.name
            is_class = isinstance(inner, ast.ClassDef)
            yield from _qualified(inner, f"{before}{inner.name}." + ("" if is_class else "<locals>."))
        else:
            yield from _qualified(inner, before)


def _is_triton(node: ast.Import | ast.ImportFrom) -> bool:
    modules = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or "."]
    relative = isinstance(node, ast.ImportFrom) and node.level
    return not relative and all(module == "math" or module in MODULES for module in modules)


def _module(path: str) -> Any:
    first, *rest = path.split(".")
    value = {"triton": triton}[first]
    for name in rest:
        value = getattr(value, name)
    return value


def _plain_default(node: ast.expr | None) -> ast.expr | None:
    """A literal, or a name that is looked up and not called; None in place of the others."""
    if node is None:
        return None
    harmless = (ast.Constant, ast.UnaryOp, ast.USub, ast.Tuple, ast.Load)
    if all(isinstance(part, harmless) for part in ast.walk(node)):
        return node
    return ast.copy_location(ast.Constant(None), node)


def _as_tuples(kind: Any) -> Any:
    return tuple(map(_as_tuples, kind)) if isinstance(kind, list) else kind


def _with_names(value: Any, path: tuple[int, ...], fields: dict[tuple[int, ...], list[str]]) -> Any:
    """`value`, where a tuple whose path has names becomes one with these."""
    if not isinstance(value, tuple):
        return value
    parts = [_with_names(part, (*path, number), fields) for number, part in enumerate(value)]
    return namedtuple("Named", fields[path])(*parts) if path in fields else tuple(parts)


def _value(said: dict, scope: dict[str, Any]) -> Any:
    """What a recipe calls a constant. Raises ValueError where it is no plain value."""
    (kind, what), *_ = said.items()
    if kind == "items":
        return tuple(_value(item, scope) for item in what)
    if kind == "dtype":
        if what not in _DTYPES:
            raise ValueError("a constant that is no plain value")
        return _DTYPES[what]
    if kind == "function" and isinstance(scope.get(what), JITFunction):
        return scope[what]
    if kind == "value":
        return float(what) if what in ("inf", "-inf", "nan") else ast.literal_eval(what)
    raise ValueError("a constant that is no plain value")


_DTYPES = {value.name: value for value in vars(tl).values() if isinstance(value, tl.dtype)}
