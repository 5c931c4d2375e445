"""The kernels of a file without the rest of it: what Triton's front end makes of them when nothing else has run.

Each kernel and each constexpr function is defined as it stands there, without decorators, annotations and defaults, so
that defining it runs nothing. The file lies on disk in full, at the same lines, because Triton reads a function's
source from there.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import inspect
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
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource

from grader.front_end.allowed_attributes import by_name, guard_functions_of, has_by_name
from grader.front_end.constexpr_evaluator import Evaluation, NotEvaluated, evaluator
from grader.front_end.file_scope import ModuleNames, NotPlain, is_plain, public_object, value_of, with_names
from grader.front_end.kernel_text import text_of
from grader.submission.kernel_names import FileNames

SYMBOL = re.compile(r"[A-Za-z_][\w.$]*", re.ASCII)  # what a kernel may be called on a GPU
NOT_EVALUATED = __future__.annotations.compiler_flag
NO_VALUE = (NotPlain, NotEvaluated, ImportError, AttributeError, NameError, TypeError, ValueError)


class Global:
    """Stands for a global that a kernel cannot see, such as a list: Triton's front end refuses it by its name."""


class NotInFile(Exception):
    """A recipe names a function that is no kernel of the file."""


class FileKernels:
    """The kernels of one file. The current folder is the process's own, and takes the file."""

    def __init__(self, filename: str, source: bytes) -> None:
        self.path = os.path.join(os.getcwd(), os.path.basename(filename))
        with open(self.path, "wb") as file:
            file.write(source)
        linecache.clearcache()
        self.tree = ast.parse(source, self.path)
        self.names = FileNames(self.tree)
        self.module_names = ModuleNames(self.tree, self.names)
        self.stem = os.path.splitext(os.path.basename(filename))[0]
        self.qualified = dict(_qualified(self.tree, ""))
        self._scope_of: tuple[Any, dict[str, Any], dict[tuple[str, int], Any]] = None, {}, {}  # the last one
        guard_functions_of(self.path)

    def text(self, recipe: dict, target: GPUTarget) -> bytes:
        """Returns the text of the kernel that the recipe names. Raises NotInFile, NotPlain, and what Triton raises."""
        options = {name: value for name, value in recipe["options"].items() if value is not None}
        return text_of(self.source(recipe), target, options)

    def source(self, recipe: dict) -> ASTSource:
        """Returns what Triton's compiler is given for the kernel, with the recipe's types and constants."""
        scope, functions = self._scope(recipe)
        kernel = functions.get((recipe["function"], recipe["line"]))
        if not isinstance(kernel, triton.runtime.JITFunction):
            raise NotInFile(recipe["function"])
        fields = {tuple(path): names for path, names in recipe["fields"]}
        constants = {
            tuple(path): with_names(_constant(kernel.arg_names[path[0]], said, functions), tuple(path), fields)
            for path, said in recipe["constants"]
        }
        attributes = {tuple(path): value for path, value in recipe["attrs"]}
        signature = {
            name: with_names(_as_tuples(kind), (kernel.arg_names.index(name),), fields)
            for name, kind in recipe["signature"].items()
        }
        return ASTSource(kernel, signature, constants, attributes)

    def _scope(self, recipe: dict) -> tuple[dict[str, Any], dict[tuple[str, int], Any]]:
        """Returns a module's names with their values, and the file's functions by name and line."""
        key = repr([recipe[name] for name in ("function", "line", "globals", "symbol", "set")])
        if self._scope_of[0] != key:
            self._scope_of = key, *self._new_scope(recipe)
        return self._scope_of[1:]

    def _new_scope(self, recipe: dict) -> tuple[dict[str, Any], dict[tuple[str, int], Any]]:
        module = ModuleType(self.stem)
        sys.modules[self.stem] = module  # where Triton looks for the source
        scope = vars(module)
        scope |= {"__builtins__": {}, "getattr": by_name, "hasattr": has_by_name}
        scope |= {name: namedtuple(name, fields) for name, fields in self.names.tuples.items()}
        functions = {}
        for node in self.names.bodies:
            is_asked_for = (node.name, line_of(node)) == (recipe["function"], recipe["line"])
            functions[node.name, line_of(node)] = self._defined(node, scope, recipe["symbol"] if is_asked_for else "")
        told = {name: (is_constexpr, said) for name, is_constexpr, said in recipe["globals"]}
        for name in {**dict.fromkeys(self.module_names.public), **told}:
            self._add(name, scope, told.get(name), functions)
        for name, line in functions:
            if name not in told or self.module_names.bindings[name] == 1:
                scope[name] = functions[name, line]
        for name, expression in self.module_names.assignments_of(told):
            with contextlib.suppress(Exception):  # what is evaluated here alone is the recipe's to tell
                value = Evaluation(scope, {}).value(expression)
                if name in recipe["set"]:
                    value = recipe["set"][name]
                if is_plain(value):
                    scope[name] = value
        self._add_defaults(functions, scope)
        return scope, functions

    def _add(
        self, name: str, scope: dict[str, Any], told: tuple[int, dict] | None, functions: dict[tuple[str, int], Any]
    ) -> None:
        """Raises NotPlain for a constexpr that holds no plain value. An import that fails leaves its name undefined."""
        if name in self.module_names.public:
            with contextlib.suppress(ImportError, AttributeError):
                scope[name] = public_object(self.module_names.public[name])
        elif told is not None and name not in self.names.tuples:
            is_constexpr, said = told
            try:
                value = value_of(said, functions)
            except NO_VALUE as error:
                if is_constexpr:
                    raise NotPlain(f"{name} is {error}") from None
                value = Global()
            scope[name] = tl.constexpr(value) if is_constexpr else value

    def _defined(self, node: ast.FunctionDef, scope: dict[str, Any], symbol: str) -> Any:
        """Returns the function, as it stands in the file, under its decorator alone. Annotations stay text.

        `symbol`: what the compiler's text calls it, "" for its own name.
        """
        given, none = node.args, ast.Constant(None)
        plain = ast.arguments(
            given.posonlyargs, given.args, given.vararg, given.kwonlyargs,
            [one and none for one in given.kw_defaults], given.kwarg, [none] * len(given.defaults),
        )  # fmt: skip
        bare = ast.FunctionDef(node.name, plain, node.body, [], node.returns, node.type_comment)
        bare = ast.fix_missing_locations(ast.copy_location(bare, node))
        if hasattr(node, "type_params"):
            bare.type_params = []
        code = compile(ast.Module([bare], []), self.path, "exec", NOT_EVALUATED, dont_inherit=True)
        exec(code, scope)  # which defines it, and runs nothing of it
        function: FunctionType = scope.pop(node.name)
        function.__qualname__ = self.qualified[node]
        if node not in self.names.kernels:
            evaluated = triton.constexpr_function(function)
            evaluated.fn = evaluator(node, scope)
            return evaluated
        named = {"repr": lambda _: symbol} if SYMBOL.fullmatch(symbol) else {}
        return triton.jit(**self._options(node), **named)(function)

    def _options(self, node: ast.FunctionDef) -> dict[str, Any]:
        """Returns those that change the text, of @triton.jit(noinline=True)."""
        decorator = self.names.decorator(node, "triton.jit")
        given = decorator.keywords if isinstance(decorator, ast.Call) else []
        return {
            one.arg: one.value.value
            for one in given
            if one.arg in ("noinline", "debug") and isinstance(one.value, ast.Constant)
        }

    def _add_defaults(self, functions: dict[tuple[str, int], Any], scope: dict[str, Any]) -> None:
        """Gives each kernel the defaults that stand in the file, where they are plain; None takes another's place."""
        for node in self.names.kernels:
            kernel, named = functions[node.name, line_of(node)], zip(node.args.kwonlyargs, node.args.kw_defaults)
            kernel.fn.__defaults__ = tuple(_plain(default, scope) for default in node.args.defaults)
            kernel.fn.__kwdefaults__ = {one.arg: _plain(default, scope) for one, default in named if default}
            kernel.signature = inspect.signature(kernel.fn)  # Triton 3.6 asks the function, 3.9 this


def line_of(node: ast.FunctionDef) -> int:
    """Returns the line where Python says that the function begins: that of its first decorator."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _qualified(node: ast.AST, before: str) -> Iterator[tuple[ast.AST, str]]:
    """The qualified name that Python gives each function."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield inner, before + inner.name
            is_class = isinstance(inner, ast.ClassDef)
            yield from _qualified(inner, f"{before}{inner.name}." + ("" if is_class else "<locals>."))
        else:
            yield from _qualified(inner, before)


def _plain(default: ast.expr, scope: dict[str, Any]) -> Any:
    try:
        return Evaluation(scope, {}).value(default)
    except NO_VALUE:
        return None


def _constant(argument: str, said: dict, functions: dict[tuple[str, int], Any]) -> Any:
    """Raises NotPlain with the argument's name."""
    try:
        return value_of(said, functions)
    except NO_VALUE as error:
        raise NotPlain(f"{argument} is {error}") from None


def _as_tuples(kind: Any) -> Any:
    return tuple(map(_as_tuples, kind)) if isinstance(kind, list) else kind
