"""The names that a function of a learner's file sees, each with its value: told in a recipe, and checked by the file.

A recipe comes from the file's own process, where any Python ran. So its word counts for a name as far as the file
leaves it open: which of its bindings came to pass, and what host code computed. A value that none of the bindings gives
is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from grader.front_end.bindings import Binding, FileScopes, Scope, line_of
from grader.front_end.constexpr_evaluator import Evaluation, NotEvaluated
from grader.front_end.told_values import (
    NO_VALUE,
    Functions,
    NotPlain,
    is_public_path,
    is_same,
    named_value,
    public_object,
    tuple_class,
)
from grader.submission.kernel_names import FileNames

DECORATORS = ("triton.jit", "triton.constexpr_function")
UNKNOWN = object()  # a value that the syntax tree does not tell
_FAILED = object()  # the value of a name whose import fails


class Global:
    """Stands for a global that a kernel cannot see, such as a list: Triton's front end refuses it by its name."""


class FileScope:
    """Tells the values of the names that the file's functions see.

    constants: integers of the module that have another value in this call, with all that is derived from them.
    """

    def __init__(self, scopes: FileScopes, names: FileNames, functions: Functions, constants: Mapping[str, int]):
        self.scopes, self.names, self.functions, self.constants = scopes, names, functions, constants
        self._found: dict[tuple[str, int, bool], Any] = {}  # values of certain names: each may be made of others

    def values(self, function: ast.FunctionDef, told: list[list]) -> dict[str, Any]:
        """Returns the names that the function sees with their values. Raises NotPlain.

        told: [name, 1 for a constexpr, value] each, as recipes tell them.
        """
        around = self.scopes.around[function]
        found = {one[0]: self._checked(one[0], around, one) for one in told}
        for name in {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} - found.keys():
            value = self.certain(name, around, self.constants)
            if value is not UNKNOWN:
                found[name] = value
        return found

    def default(self, function: ast.FunctionDef, parameter: str, default: ast.expr, told: list | None) -> Any:
        """Returns the value of a parameter's default. Raises NotPlain. told: as in `values`; None where nothing is."""
        possible = self._possible(partial(self._of_expression, default, self.scopes.around[function]))
        if told is None:
            return Global() if possible[0] is UNKNOWN else possible[0]
        return self._agreed(f"the default of {parameter}", told, possible, function.lineno)

    def _checked(self, name: str, around: Scope, told: list) -> Any:
        bindings = around.bindings(name)
        possible = [value for one in bindings for value in self._possible(partial(self._of, one))]
        if name in self.constants and bindings is self.scopes.module.names.get(name):
            possible.append(self.constants[name])
        return self._agreed(name, told, possible, bindings[-1].line if bindings else 0)

    def _agreed(self, name: str, told: list, possible: list[Any], line: int) -> Any:
        """Returns the value that the recipe tells, where the file leaves room for it."""
        try:
            value = named_value(told, self.functions)
        except NO_VALUE as error:
            if told[1]:  # a constexpr
                raise NotPlain(f"{name} is {error}") from None
            return Global()
        if possible and not any(one is UNKNOWN or is_same(value, one) for one in possible):
            raise NotPlain(f"{name} has another value at the launch than line {line} gives it")
        return value

    def certain(self, name: str, around: Scope, known: Mapping[str, int]) -> Any:
        """Returns the value of a name that is bound once, by a statement that always runs; UNKNOWN of another."""
        bindings = around.bindings(name)
        if len(bindings) != 1 or not bindings[0].is_certain:
            return UNKNOWN
        if name in known:
            return known[name]
        place = name, id(bindings), bool(known)
        if place not in self._found:
            self._found[place] = UNKNOWN  # while it is being found: a name that is made of itself
            self._found[place] = self._of(bindings[0], known)
        return self._found[place]

    def _possible(self, value: Callable[[Mapping[str, int]], Any]) -> list[Any]:
        """Returns the value with the constants of this call, and with the file's own, which a branch may have kept."""
        found = [value(self.constants)]
        return [*found, value({})] if self.constants else found

    def _of(self, binding: Binding, known: Mapping[str, int]) -> Any:
        """Returns the value that one binding gives; UNKNOWN if the tree does not tell it."""
        node = binding.made_by
        if binding.path:
            return _imported(binding.path)
        if isinstance(node, ast.FunctionDef):
            return self._function(node)
        if isinstance(node, ast.ClassDef):
            return self._named_tuple(node, known)
        if isinstance(node, ast.expr):
            return self._of_expression(node, binding.scope, known)
        return UNKNOWN

    def _function(self, node: ast.FunctionDef) -> Any:
        """A function under one decorator of Triton is what stands there; another decorator may make anything of it."""
        if not node.decorator_list:
            return node  # plain Python, which no recipe tells
        is_bare = len(node.decorator_list) == 1 and node in self.names.bodies
        return self.functions[node.name, line_of(node)] if is_bare else UNKNOWN

    def _named_tuple(self, node: ast.ClassDef, known: Mapping[str, int]) -> Any:
        is_bare = not node.decorator_list and not node.keywords
        if not is_bare or [self.names.path(base) for base in node.bases] != ["typing.NamedTuple"]:
            return UNKNOWN
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
        defaults = [self._of_expression(one.value, self.scopes.module, known) for one in fields if one.value]
        if any(value is UNKNOWN for value in defaults):
            return UNKNOWN
        return tuple_class(node.name, [one.target.id for one in fields], defaults)

    def _of_expression(self, node: ast.expr, around: Scope, known: Mapping[str, int]) -> Any:
        """Returns the value of an expression in a scope, made of names that are certain; else UNKNOWN."""
        if isinstance(node, ast.Call) and (made := self._of_call(node)) is not UNKNOWN:
            return made
        try:
            return Evaluation(_Certain(self, around, known), {}).value(node)
        except MemoryError:
            raise
        except Exception:  # a name that is not certain, a construct that is not evaluated, what Python raises too
            return UNKNOWN

    def _of_call(self, node: ast.Call) -> Any:
        """Returns what namedtuple("Pair", "x y") and triton.jit(function) make; UNKNOWN for another call."""
        if fields := self.names.namedtuple_fields(node):
            has_defaults = any(keyword.arg != "rename" for keyword in node.keywords)
            return UNKNOWN if has_defaults else tuple_class("Named", fields, [])
        if self.names.path(node.func) in DECORATORS and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            made = [one.made_by for one in self.scopes.module.bindings(node.args[0].id)]
            functions = [one for one in made if isinstance(one, ast.FunctionDef) and one in self.names.bodies]
            if len(functions) == 1:
                return self.functions[functions[0].name, line_of(functions[0])]
        return UNKNOWN


class _Certain(Mapping):
    """The names that an expression sees in a scope, with their values. An uncertain name raises NotEvaluated."""

    def __init__(self, file: FileScope, around: Scope, known: Mapping[str, int]) -> None:
        self.file, self.around, self.known = file, around, known

    def __getitem__(self, name: str) -> Any:
        if not self.around.bindings(name):
            raise KeyError(name)
        value = self.file.certain(name, self.around, self.known)
        if value is UNKNOWN:
            raise NotEvaluated(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _imported(path: str) -> Any:
    if not is_public_path(path):
        return UNKNOWN
    try:
        return public_object(path)
    except (ImportError, AttributeError):
        return _FAILED
