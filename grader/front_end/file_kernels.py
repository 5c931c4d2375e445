"""The kernels of a file without the rest of it: Triton's front end reads them when nothing else of the file has run.

Each kernel and each constexpr function is defined as it stands there, without decorators, annotations and defaults, so
that defining it runs nothing. The file lies on disk in full, at the same lines, because Triton reads a function's
source from there.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import os
import re
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import triton

from grader.front_end.allowed_attributes import guard_functions_of
from grader.front_end.bindings import FileScopes, line_of
from grader.front_end.constexpr_evaluator import NotEvaluated, evaluator
from grader.front_end.file_scope import FileScope
from grader.front_end.guarded_operators import guard_operators_of
from grader.front_end.kernel_text import text_of
from grader.front_end.told_values import NO_VALUE, Functions, NotPlain, value_of, with_names
from grader.front_end.triton_text_api import ASTSource, GPUTarget, JITCallable, JITFunction, sign
from grader.submission.kernel_names import FileNames
from grader.wire.frames import JsonObject

SYMBOL = re.compile(r"[A-Za-z_][\w.$]*", re.ASCII)  # what a kernel may be called on a GPU
NOT_EVALUATED = __future__.annotations.compiler_flag


class NotInFile(Exception):
    """A recipe names a function that is no kernel of the file."""


class FileKernels:
    """The kernels of a file, which is written into the current folder: that is the process's own."""

    def __init__(self, filename: str, source: bytes) -> None:
        self.path = os.path.join(os.getcwd(), os.path.basename(filename))
        with open(self.path, "wb") as file:
            file.write(source)
        linecache.clearcache()
        self.tree = ast.parse(source, self.path)
        self.names, self.scopes = FileNames(self.tree), FileScopes(self.tree)
        self.stem = os.path.splitext(os.path.basename(filename))[0]
        sys.modules[self.stem] = ModuleType(self.stem)  # where Triton looks for the source
        self.bodies = {(node.name, line_of(node)): node for node in self.names.bodies}
        self._qualified = dict(_qualified(self.tree, ""))
        self._codes: dict[ast.AST, CodeType] = {}
        self._is_read: dict[ast.AST, bool] = {}
        self._functions: tuple[str, _Functions] | None = None  # the last ones, and the part of the recipe they are of
        guard_functions_of(self.path)
        guard_operators_of(self.path)

    def text(self, recipe: JsonObject, target: GPUTarget) -> bytes:
        """Returns the text of the kernel that the recipe names. Raises NotInFile, NotPlain, and what Triton raises."""
        options = {name: value for name, value in recipe["options"].items() if value is not None}
        return text_of(self.source(recipe), target, options)

    def source(self, recipe: JsonObject) -> ASTSource:
        """Returns the input of Triton's compiler for the kernel, with the recipe's types and constants.

        Raises NotInFile, NotPlain.
        """
        functions = self._functions_of(recipe)
        kernel = functions.get((recipe["function"], recipe["line"]))
        if not isinstance(kernel, JITFunction):
            raise NotInFile(recipe["function"])
        fields = {tuple(path): names for path, names in recipe["fields"]}
        constants = {
            tuple(path): _constant(kernel.arg_names[path[0]], said, functions) for path, said in recipe["constants"]
        }
        if functions.refused is not None:
            raise functions.refused
        attributes = {tuple(path): value for path, value in recipe["attrs"]}
        signature = {
            name: with_names(_as_tuples(kind), (kernel.arg_names.index(name),), fields)
            for name, kind in recipe["signature"].items()
        }
        return ASTSource(kernel, signature, constants, attributes)

    def _functions_of(self, recipe: JsonObject) -> _Functions:
        key = repr([recipe[name] for name in ("function", "line", "scopes", "symbol", "set")])
        if self._functions is None or self._functions[0] != key:
            self._functions = key, _Functions(self, recipe)
        return self._functions[1]

    def defined(self, node: ast.FunctionDef, scope: dict[str, Any]) -> FunctionType:
        """Returns the function, without decorators, annotations and defaults, with `scope` as its globals."""
        if node not in self._codes:
            self._codes[node] = self._code(node)
        function = FunctionType(self._codes[node], scope, node.name)
        function.__qualname__ = self._qualified[node]
        return function

    def _code(self, node: ast.FunctionDef) -> CodeType:
        given, none = node.args, ast.Constant(None)
        plain = ast.arguments(
            given.posonlyargs, given.args, given.vararg, given.kwonlyargs,
            [default and none for default in given.kw_defaults], given.kwarg, [none] * len(given.defaults),
        )  # fmt: skip
        bare = ast.FunctionDef(node.name, plain, node.body, [], node.returns, node.type_comment)
        bare = ast.fix_missing_locations(ast.copy_location(bare, node))
        if hasattr(node, "type_params"):  # since Python 3.12
            vars(bare)["type_params"] = []
        code = compile(ast.Module([bare], []), self.path, "exec", NOT_EVALUATED, dont_inherit=True)
        return next(constant for constant in code.co_consts if isinstance(constant, CodeType))

    def check_text(self, function: JITCallable, node: ast.FunctionDef) -> None:
        """Raises NotPlain if Triton, which looks for a function's text by its lines, reads another function there."""
        if node not in self._is_read:
            try:
                (read,) = function.parse().body
                self._is_read[node] = _without_places(read) == _without_places(node)
            except (SyntaxError, AssertionError, ValueError):
                self._is_read[node] = False
        if not self._is_read[node]:
            raise NotPlain(f"Triton reads another function than the one in line {node.lineno}")

    def options(self, node: ast.FunctionDef) -> dict[str, Any]:
        """Returns the options of @triton.jit that change the text, as noinline=True."""
        decorator = self.names.decorator(node, "triton.jit")
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
        return {
            keyword.arg: keyword.value.value
            for keyword in keywords
            if keyword.arg in ("noinline", "debug") and isinstance(keyword.value, ast.Constant)
        }


class _Functions(Mapping[tuple[str, int], Any]):
    """The file's functions by name and line, each made when it is asked for, with the scope that a recipe tells of it.

    refused: why a function's scope is not its own, for the first of these functions; None without any.
    """

    def __init__(self, file: FileKernels, recipe: JsonObject) -> None:
        self.file, self.recipe = file, recipe
        self.told = {(name, line): (names, defaults) for name, line, names, defaults in recipe["scopes"]}
        self.scope = FileScope(file.scopes, file.names, self, recipe["set"])
        self.refused: NotPlain | None = None
        self._made: dict[tuple[str, int], Any] = {}

    def __getitem__(self, place: tuple[str, int]) -> Any:
        if place not in self._made:
            self._make(place, self.file.bodies[place])
        return self._made[place]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.file.bodies)

    def __len__(self) -> int:
        return len(self.file.bodies)

    def _make(self, place: tuple[str, int], node: ast.FunctionDef) -> None:
        scope = {"__builtins__": {}, "__name__": self.file.stem}
        function = self.file.defined(node, scope)
        if node in self.file.names.kernels:
            is_asked_for = place == (self.recipe["function"], self.recipe["line"])
            symbol = self.recipe["symbol"] if is_asked_for else ""
            named = {"repr": lambda _: symbol} if SYMBOL.fullmatch(symbol) else {}
            made = triton.jit(**self.file.options(node), **named)(function)
        else:
            made = triton.constexpr_function(function)
            made.fn = _is_being_made  # and not yet the evaluator: a value that its own scope needs may call it
        self._made[place] = made  # before its scope, which may hold this function
        names, defaults = self.told.get(place, ([], []))
        try:
            self.scope.check_is_made(node)
            self.file.check_text(made, node)
            scope |= self.scope.values(node, names)
            self._add_defaults(function, node, {default[0]: default for default in defaults})
        except NotPlain as refused:
            self.refused = self.refused or refused
        sign(made, function)
        if node not in self.file.names.kernels:
            made.fn = evaluator(node, scope, made.signature)

    def _add_defaults(self, function: FunctionType, node: ast.FunctionDef, told: dict[str, list[Any]]) -> None:
        places = [*node.args.posonlyargs, *node.args.args]
        given = list(zip(places[len(places) - len(node.args.defaults) :], node.args.defaults))
        named = [(one, default) for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults) if default]
        values = {one.arg: self.scope.default(node, one.arg, value, told.get(one.arg)) for one, value in given + named}
        function.__defaults__ = tuple(values[parameter.arg] for parameter, _ in given) or None
        function.__kwdefaults__ = {parameter.arg: values[parameter.arg] for parameter, _ in named} or None


def _is_being_made(*arguments: Any, **named: Any) -> None:
    raise NotEvaluated("a constexpr function is called before its own names have values")


def _without_places(node: ast.FunctionDef) -> list[str]:
    """Returns the texts of a function's nodes without line numbers. Indentation inside of strings is left out.

    Triton takes it off where a function is indented.
    """
    return [re.sub(r"\\n +", r"\\n", ast.dump(part).replace(r"\t", " ")) for part in (node.args, *node.body)]


def _qualified(node: ast.AST, before: str) -> Iterator[tuple[ast.AST, str]]:
    """Yields each function and class below a node, with the qualified name that Python gives it."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield inner, before + inner.name
            is_class = isinstance(inner, ast.ClassDef)
            yield from _qualified(inner, f"{before}{inner.name}." + ("" if is_class else "<locals>."))
        else:
            yield from _qualified(inner, before)


def _constant(argument: str, constant: JsonObject, functions: Functions) -> Any:
    """Returns the value of a constant. Raises NotPlain with the argument's name."""
    try:
        return value_of(constant, functions)
    except NO_VALUE as error:
        raise NotPlain(f"{argument} is {error}") from None


def _as_tuples(kind: Any) -> Any:
    return tuple(map(_as_tuples, kind)) if isinstance(kind, list) else kind
