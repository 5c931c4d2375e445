"""The names that a file binds, scope by scope as Python has them: read off the syntax tree; nothing runs for it.

A function finds a name in the functions around it, then in the module. What a class binds is seen by nobody but itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Binding:
    """One place where a name gets a value.

    made_by: the definition, the expression that is assigned, or None for a value that the tree does not tell: a
        parameter, a loop's name, `with ... as`, `del`.
    path: of an import, "triton.language.exp".
    scope: where `made_by` stands, and its own names mean something.
    is_certain: a statement of the module itself, outside of any branch.
    """

    line: int
    scope: Scope
    made_by: ast.AST | None = None
    path: str = ""
    is_certain: bool = False


@dataclass
class Scope:
    """A module, a class, a function or a comprehension, with the names that it binds."""

    node: ast.AST
    outer: Scope | None = None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)  # names that `global` and `nonlocal` take from another scope

    def bindings(self, name: str) -> list[Binding]:
        """Returns the bindings of the name that an expression here sees; none for a builtin or an unknown name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
            while scope is not None and isinstance(scope.node, ast.ClassDef):
                scope = scope.outer
        return []

    def bind(self, name: str, binding: Binding) -> None:
        self.names.setdefault(name, []).append(binding)


class FileScopes:
    """`around[function]`: the scope in which a function of the file is defined."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree)
        self.around: dict[ast.AST, Scope] = {}
        for statement in tree.body:
            self._read(statement, self.module, is_certain=True)

    def _read(self, node: ast.AST, scope: Scope, is_certain: bool = False) -> None:
        if isinstance(node, FUNCTIONS):
            self._function(node, scope, is_certain)
        elif isinstance(node, ast.ClassDef):
            self._bind(node.name, scope, Binding(node.lineno, scope, node, is_certain=is_certain))
            self._read_all([*node.decorator_list, *node.bases, *node.keywords], scope)
            inner = Scope(node, scope, elsewhere=_elsewhere(node.body))
            self._read_all([*_type_parameters(node), *node.body], inner)
        elif isinstance(node, COMPREHENSIONS):
            self._read_all(ast.iter_child_nodes(node), Scope(node, scope))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            self._assignment(node, scope, is_certain)
        elif isinstance(node, ast.NamedExpr):
            self._read(node.value, scope)
            scope = _around_comprehensions(scope)
            self._bind(node.target.id, scope, Binding(node.lineno, scope))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, path in _imported(node):
                self._bind(name, scope, Binding(node.lineno, scope, path=path, is_certain=is_certain))
        else:
            for name in _bound_by(node):
                self._bind(name, scope, Binding(node.lineno, scope))
            self._read_all(ast.iter_child_nodes(node), scope)

    def _read_all(self, nodes: Iterator[ast.AST] | list, scope: Scope) -> None:
        for node in nodes:
            self._read(node, scope)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope, is_certain: bool):
        inner = Scope(node, scope)
        self.around[node] = scope
        if not isinstance(node, ast.Lambda):
            self._bind(node.name, scope, Binding(line_of(node), scope, node, is_certain=is_certain))
            self._read_all(node.decorator_list, scope)
            inner.elsewhere = _elsewhere(node.body)
        self._read(node.args, scope)
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                inner.bind(argument.arg, Binding(argument.lineno, inner))
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        self._read_all([*_type_parameters(node), *body], inner)

    def _assignment(self, node: ast.Assign | ast.AnnAssign, scope: Scope, is_certain: bool) -> None:
        self._read_all(filter(None, [node.value, getattr(node, "annotation", None)]), scope)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if not isinstance(target, ast.Name):
                self._read(target, scope)
            elif node.value is not None:
                self._bind(target.id, scope, Binding(node.lineno, scope, node.value, is_certain=is_certain))

    def _bind(self, name: str, scope: Scope, binding: Binding) -> None:
        """A name that is declared global or nonlocal gets its value in the scopes around, and nobody knows when."""
        if name not in scope.elsewhere:
            scope.bind(name, binding)
            return
        outer = scope.outer
        while outer is not None:
            outer.bind(name, Binding(binding.line, outer))
            outer = outer.outer


def _around_comprehensions(scope: Scope) -> Scope:
    """Where `:=` in a comprehension binds its name."""
    while isinstance(scope.node, COMPREHENSIONS):
        scope = scope.outer
    return scope


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    elif type(node).__name__ in ("TypeVar", "ParamSpec", "TypeVarTuple"):
        yield node.name


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Names with their paths; of a module of the file's own folder, which a dot begins, the path is "."."""
    for one in node.names:
        if isinstance(node, ast.ImportFrom):
            yield one.asname or one.name, "." if node.level else f"{node.module}.{one.name}"
        else:
            top = one.name.partition(".")[0]
            yield one.asname or top, one.name if one.asname else top


def _own_nodes(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """All of these, without what stands in functions and classes among them."""
    for node in nodes:
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield from _own_nodes(list(ast.iter_child_nodes(node)))


def _elsewhere(body: list[ast.stmt]) -> set[str]:
    declared = (node for node in _own_nodes(body) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return {name for node in declared for name in node.names}


def _type_parameters(node: ast.AST) -> list[ast.AST]:
    return getattr(node, "type_params", [])  # since Python 3.12


def line_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns the line where Python says that the function begins: that of its first decorator."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])
