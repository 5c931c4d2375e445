"""The names that a function of a learner's file sees, each with its value: told in a recipe, and checked by the file.

A recipe comes from the file's own process, where any Python ran. So it is believed about a name only as far as the file
leaves the value open: which of its bindings came to pass, and what host code computed. A value that none of the
bindings gives is refused.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any

import triton.language as tl

from grader.front_end.bindings import Binding, FileScopes, Scope, at_last, line_of, since
from grader.front_end.constexpr_evaluator import CallsItself, Evaluation, NotEvaluated
from grader.front_end.told_values import (
    NO_VALUE,
    Functions,
    NotPlain,
    Unseen,
    is_public_path,
    is_same,
    named_value,
    public_object,
    tuple_class,
)
from grader.front_end.triton_text_api import JITCallable
from grader.submission.kernel_names import CONSTEXPR_FUNCTIONS, FileNames

DECORATORS = ("triton.jit", *CONSTEXPR_FUNCTIONS)
LASTING = (
    NoneType, bool, int, float, str, tl.dtype, ast.FunctionDef, JITCallable, FunctionType, BuiltinFunctionType,
    ModuleType, type,
)  # fmt: skip
UNKNOWN = object()  # a value that the syntax tree does not tell
_HIDDEN = object()  # a value that no recipe can tell: an import that fails, a class that is more than its fields


class FileScope:
    """Finds the values of the names that the file's functions see.

    constants: integers of the module that have another value in this call; values derived from them follow.
    """

    def __init__(self, scopes: FileScopes, names: FileNames, functions: Functions, constants: Mapping[str, int]):
        self.scopes, self.names, self.functions, self.constants = scopes, names, functions, constants
        self._made: dict[tuple[ast.AST, bool], Any] = {}  # by what makes a value
        self._found: dict[tuple[str, int, bool], Any] = {}  # values of certain names; each may be made of others

    def values(self, function: ast.FunctionDef, told: list[list[Any]]) -> dict[str, Any]:
        """Returns the names that the function sees with their values. Raises NotPlain.

        told: [name, 1 for a constexpr, value] for each name, as recipes tell them.
        """
        around = self.scopes.seen_by(function)
        values, absent = {}, set()
        for one in told:
            is_own = self.scopes.is_own(one[0], function)
            if "absent" in one[2]:
                self._check_absent(one[0], around)
                absent.add(one[0])
            else:
                values[one[0]] = self._checked(one[0], self.scopes.module if is_own else around, one, is_own)
        for name in self._names_in(function) - values.keys() - absent:
            self._check_stars(name, at_last(around.bindings(name)))
            value = self.certain(name, around, self.constants)
            if value is not UNKNOWN:
                values[name] = value
        return values

    def _names_in(self, function: ast.FunctionDef) -> set[str]:
        """Returns the names that the function takes from scopes around it."""
        names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        return {name for name in names if not self.scopes.is_own(name, function)}

    def check_is_made(self, function: ast.FunctionDef) -> None:
        """Raises NotPlain unless Triton makes the function: by its decorator, or by a call with its name alone."""
        around = self.scopes.around[function]
        decorators = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
        if any(self.scopes.path(decorator, around) in DECORATORS for decorator in decorators):
            return
        if any(function in self._function_given_to(call) for call in self.names.calls):
            return
        for node in (inner for decorator in decorators for inner in ast.walk(decorator) if isinstance(inner, ast.Name)):
            self._check_stars(node.id, since(node.lineno, around.bindings(node.id)))
        raise NotPlain(f"something else than triton.jit makes {function.name} in line {function.lineno}")

    def _function_given_to(self, call: ast.Call) -> list[ast.FunctionDef]:
        """Returns, in a list, the file's function that a call of triton.jit gets; [] if another may be meant."""
        around = self.scopes.around[call]
        if self.scopes.path(call.func, around) not in DECORATORS or len(call.args) != 1:
            return []
        bindings = around.bindings(call.args[0].id) if isinstance(call.args[0], ast.Name) else []
        own = next((place for place, binding in enumerate(bindings) if binding.made_by is call), None)
        if own is not None and bindings[own].is_certain:  # kernel = triton.jit(kernel): what follows is made of it
            later = [binding for binding in bindings[own + 1 :] if binding.is_from_inside]
            bindings = [*since(call.lineno, bindings[:own]), *later]
        made = [binding.made_by for binding in bindings if binding.made_by is not call]
        return [body for body in self.names.bodies if made == [body]]

    def default(self, function: ast.FunctionDef, parameter: str, default: ast.expr, told: list[Any] | None) -> Any:
        """Returns the value of a parameter's default. Raises NotPlain. told: as in `values`, or None."""
        possible = self._possible(partial(self._of_expression, default, self.scopes.around[function]))
        if told is None:
            return possible[0] if _is_lasting(possible[0]) else Unseen()
        return self._agreed(f"the default of {parameter}", told, possible, function.lineno)

    def _checked(self, name: str, around: Scope, told: list[Any], is_own: bool) -> Any:
        bindings = at_last(around.bindings(name))
        if is_own and any(binding.is_star for binding in bindings):
            return Unseen()  # what a star may bring is hidden by the function's own
        self._check_stars(name, bindings)
        if not bindings and hasattr(builtins, name):
            raise NotPlain(f"{name} is Python's own, and no line of the file gives it another value")
        possible = [value for binding in bindings for value in self._possible(partial(self._value_of, binding))]
        if name in self.constants and any(binding.scope is self.scopes.module for binding in bindings):
            possible.append(self.constants[name])
        return self._agreed(name, told, possible or [UNKNOWN], bindings[-1].line if bindings else 0)

    def _check_stars(self, name: str, bindings: list[Binding]) -> None:
        for binding in bindings:
            if binding.is_star:
                raise NotPlain(
                    f"{name} may come from the `import *` in line {binding.line}: import what you need by its name"
                )

    def _check_absent(self, name: str, around: Scope) -> None:
        """Raises NotPlain for a name that the file certainly binds, where no `del` takes it away again.

        A name of a function around is never looked for among Python's own.
        """
        bindings = at_last(around.bindings(name))
        self._check_stars(name, bindings)
        may_go = all(binding.scope is self.scopes.module or binding.is_from_inside for binding in bindings)
        may_go &= not any(one.is_certain for one in bindings) or any(_may_delete(binding) for binding in bindings)
        if not may_go:
            raise NotPlain(f"{name} has no value at the launch, and line {bindings[0].line} gives it one")

    def _agreed(self, name: str, name_told: list[Any], possible: list[Any], line: int) -> Any:
        """Returns the value that the recipe tells, if the file allows it, or Unseen. Raises NotPlain."""
        try:
            value = named_value(name_told, self.functions)
        except NO_VALUE as error:
            if name_told[1]:  # a constexpr
                raise NotPlain(f"{name} is {error}") from None
            return Unseen()
        same = next((candidate for candidate in possible if is_same(value, candidate)), UNKNOWN)
        if same is UNKNOWN and all(candidate is not UNKNOWN for candidate in possible):
            raise NotPlain(f"{name} has another value at the launch than line {line} gives it")
        return value if same is UNKNOWN else same

    def certain(self, name: str, around: Scope, known: Mapping[str, int]) -> Any:
        """Returns the value of a name that is bound once, by a statement that always runs; UNKNOWN for other names."""
        bindings = around.bindings(name)
        if len(bindings) != 1 or not bindings[0].is_certain:
            return UNKNOWN
        if name in known:
            return known[name]
        place = name, id(bindings[0]), bool(known)
        if place not in self._found:
            self._found[place] = UNKNOWN  # while it is being found: a name that is made of itself
            value = self._value_of(bindings[0], known)
            self._found[place] = value if _is_lasting(value) else UNKNOWN
        return self._found[place]

    def _possible(self, value: Callable[[Mapping[str, int]], Any]) -> list[Any]:
        """Returns the value with the constants of this call, and with the file's own, which a branch may have kept."""
        candidates = [value(self.constants)]
        return [*candidates, value({})] if self.constants else candidates

    def _value_of(self, binding: Binding, known: Mapping[str, int]) -> Any:
        """Returns the value that a binding gives; UNKNOWN if the tree does not tell it."""
        node = binding.made_by
        if binding.path:
            return _imported(binding.path)
        if isinstance(node, ast.FunctionDef):
            return self._function(node)
        if not isinstance(node, ast.ClassDef | ast.expr):
            return UNKNOWN
        place = node, bool(known)
        if place not in self._made:  # a class is the same object under all of its names
            if isinstance(node, ast.ClassDef):
                self._made[place] = self._named_tuple(node, known)
            else:
                self._made[place] = self._of_expression(node, binding.scope, known)
        return self._made[place]

    def _function(self, node: ast.FunctionDef) -> Any:
        """Returns the function made with a decorator of Triton alone, the node of plain Python, or else UNKNOWN."""
        if not node.decorator_list:
            return node  # plain Python, which no recipe tells
        is_bare = len(node.decorator_list) == 1 and node in self.names.bodies
        return self.functions[node.name, line_of(node)] if is_bare else UNKNOWN

    def _named_tuple(self, node: ast.ClassDef, known: Mapping[str, int]) -> Any:
        inside = self.scopes.inside[node]
        around = inside.outer
        if around is None:  # every class stands in a module
            return _HIDDEN
        is_bare = not node.decorator_list and not node.keywords
        if not is_bare or [self.scopes.path(base, around) for base in node.bases] != ["typing.NamedTuple"]:
            return _HIDDEN
        annotated = [statement for statement in node.body if isinstance(statement, ast.AnnAssign) and statement.simple]
        fields = [(one.target.id, one.value) for one in annotated if isinstance(one.target, ast.Name)]
        are_fields = all(isinstance(one, (ast.AnnAssign, ast.FunctionDef, ast.Expr, ast.Pass)) for one in node.body)
        are_fields &= not any(name.startswith("__") for name in inside.names)  # __add__ would make it another class
        if not are_fields or any(len(inside.names.get(name, ())) > bool(value) for name, value in fields):
            return _HIDDEN  # a branch makes a field, or a field is given its default in another way
        defaults = [self._of_expression(value, inside, known) for _, value in fields if value]
        if not all(map(_is_lasting, defaults)):
            return UNKNOWN
        return tuple_class(node.name, [name for name, _ in fields], defaults)

    def _of_expression(self, node: ast.expr, around: Scope, known: Mapping[str, int]) -> Any:
        """Returns the value of an expression in a scope, made of names that are certain; else UNKNOWN."""
        if isinstance(node, ast.Call) and (made := self._of_call(node, around)) is not UNKNOWN:
            return made
        try:
            return Evaluation(_Certain(self, around, known), {}).value(node)
        except (MemoryError, NotPlain):
            raise
        except CallsItself:
            return UNKNOWN
        except RecursionError:
            raise NotPlain(f"the value in line {node.lineno} is made of too many names") from None
        except Exception:  # a name that is not certain, a construct that is not evaluated, what Python raises too
            return UNKNOWN

    def _of_call(self, node: ast.Call, around: Scope) -> Any:
        """Returns what namedtuple("Pair", "x y") and triton.jit(function) make; UNKNOWN for another call."""
        if self.scopes.path(node.func, around) == "collections.namedtuple":
            name, fields = next(iter(node.args), None), self.names.namedtuple_fields(node)
            has_defaults = any(keyword.arg != "rename" for keyword in node.keywords)
            if fields and not has_defaults and isinstance(name, ast.Constant) and isinstance(name.value, str):
                return tuple_class(name.value, fields, [])
            return UNKNOWN
        bodies = self._function_given_to(node)
        return self.functions[bodies[0].name, line_of(bodies[0])] if bodies else UNKNOWN


def _is_lasting(value: Any) -> bool:
    """Returns whether a value cannot change after it was made, unlike a list."""
    if isinstance(value, tl.constexpr):
        return _is_lasting(value.value)
    return all(map(_is_lasting, value)) if isinstance(value, tuple) else isinstance(value, LASTING)


class _Certain(Mapping[str, Any]):
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


def _may_delete(binding: Binding) -> bool:
    return binding.made_by is None and not binding.path


def _imported(path: str) -> Any:
    if not is_public_path(path):
        return UNKNOWN
    try:
        return public_object(path)
    except (ImportError, AttributeError):
        return _HIDDEN
