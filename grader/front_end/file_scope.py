"""The names that a kernel of a learner's file sees, each with its value: found in the syntax tree, or told in a recipe.

A recipe comes from the file's own process, where any Python ran. So the file decides where it can: a name that it binds
once, by an import, a definition, a plain value or as another name of a public function, means that. The recipe's word
counts for the other names, and it can only name a public object of Triton, a function of the file, or a plain value.
"""

from __future__ import annotations

import ast
import importlib
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import triton.language as tl

from grader.front_end.allowed_attributes import is_public
from grader.submission.kernel_names import MODULES, FileNames

MATH = "math"
DTYPES = {value.name: value for value in vars(tl).values() if isinstance(value, tl.dtype)}


class NotPlain(Exception):
    """A recipe tells a value that is none of those that a kernel may see."""


class ModuleNames:
    """What the statements of a module bind, outside of its functions and classes."""

    def __init__(self, tree: ast.Module, names: FileNames) -> None:
        self.tree, self.names = tree, names

    @cached_property
    def bindings(self) -> Counter[str]:
        """How often each name is bound. One that some function calls global is bound once more."""
        counted = Counter(name for node in _of_the_module(self.tree) for name in _bound_by(node))
        counted.update(name for node in self.names.nodes if isinstance(node, ast.Global) for name in node.names)
        return counted

    @cached_property
    def public(self) -> dict[str, str]:
        """Names of public objects and modules of Triton and math, with their paths: "exp": "triton.language.exp"."""
        found = {}
        for node in _of_the_module(self.tree):
            for name, path in self._paths_of(node):
                if self.bindings[name] == 1 and is_public_path(path):
                    found[name] = path
        return found

    @cached_property
    def assignments(self) -> list[tuple[str, ast.expr]]:
        """Names that are assigned once, with what they are assigned, in the order of the file."""
        found = []
        for node in _of_the_module(self.tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found += [(target.id, node.value) for target in targets if isinstance(target, ast.Name)]
        return [(name, value) for name, value in found if self.bindings[name] == 1]

    def assignments_of(self, names: Iterable[str]) -> list[tuple[str, ast.expr]]:
        """Returns those of these names, and of all that they are made of."""
        wanted, found = set(names), []
        for name, value in reversed(self.assignments):
            if name in wanted:
                wanted |= {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
                found.append((name, value))
        return found[::-1]

    def _paths_of(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for one in node.names:
                yield one.asname or one.name.partition(".")[0], one.name if one.asname else one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)
        elif isinstance(node, ast.Assign) and (path := self.names.path(node.value)):
            yield from ((target.id, path) for target in node.targets if isinstance(target, ast.Name))


def _of_the_module(node: ast.AST) -> Iterator[ast.AST]:
    """Its nodes, without those inside of functions, classes, lambdas and comprehensions."""
    for inner in ast.iter_child_nodes(node):
        yield inner
        has_scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        if not isinstance(inner, (*has_scope, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            yield from _of_the_module(inner)


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (one.asname or one.name.partition(".")[0] for one in node.names)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name


def is_public_path(path: str) -> bool:
    """Returns True for a module that a kernel may name, and for a public object of it."""
    module, _, name = path.rpartition(".")
    return path in MODULES or path == MATH or is_public(module, name)


def public_object(path: str) -> Any:
    """Raises NotPlain for a path that a kernel may not name, ImportError or AttributeError where there is none."""
    if not is_public_path(path):
        raise NotPlain(f"{path} is no public name of Triton")
    if path in MODULES or path == MATH:
        return importlib.import_module(path)
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def value_of(said: dict, functions: dict[tuple[str, int], Any]) -> Any:
    """Returns the value that a recipe tells. Raises NotPlain, and what public_object raises.

    functions: those of the file, by name and line.
    """
    (kind, told), *_ = said.items()
    if kind == "items":
        return tuple(value_of(item, functions) for item in told)
    if kind == "dtype" and told in DTYPES:
        return DTYPES[told]
    if kind == "function" and tuple(told) in functions:
        return functions[tuple(told)]
    if kind == "public":
        return public_object(told)
    if kind == "value":
        return float(told) if told in ("inf", "-inf", "nan") else ast.literal_eval(told)
    raise NotPlain(told if isinstance(told, str) else kind)


def is_plain(value: Any) -> bool:
    """Returns True for a value that a recipe could tell."""
    value = value.value if isinstance(value, tl.constexpr) else value
    if type(value) is tuple:
        return all(map(is_plain, value))
    return value is None or type(value) in (bool, int, float, str) or isinstance(value, tl.dtype)


def with_names(value: Any, path: tuple[int, ...], fields: dict[tuple[int, ...], list[str]]) -> Any:
    """Returns `value`, in which each tuple whose path has names is one with these."""
    if not isinstance(value, tuple):
        return value
    parts = [with_names(part, (*path, number), fields) for number, part in enumerate(value)]
    return namedtuple("Named", fields[path])(*parts) if path in fields else tuple(parts)
