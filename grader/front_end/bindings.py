"""The names that a file binds, scope by scope as Python has them: read off the syntax tree; nothing runs for it.

A function finds a name in the functions around it, then in the module. Names that a class binds are seen only there.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
TYPE_PARAMETERS = tuple(
    getattr(ast, name) for name in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, name)
)  # since Python 3.12


@dataclass(frozen=True)
class Binding:
    """A place where a name gets a value.

    made_by: the definition, the expression that is assigned, or None for a value that the tree does not tell: a
        parameter, a loop's name, `with ... as`, `del`.
    path: of an import, "triton.language.exp"; "triton.language.*" of an import that may bind any names.
    scope: where `made_by` stands, and its own names mean something.
    is_certain: a statement of the module itself, outside of any branch.
    is_from_inside: a function or a class gives a name of another scope its value, at an unknown time.
    """

    line: int
    scope: Scope
    made_by: ast.AST | None = None
    path: str = ""
    is_certain: bool = False
    is_from_inside: bool = False

    @property
    def is_star(self) -> bool:
        return self.path.endswith("*")


@dataclass
class Scope:
    """A module, a class, a function or a comprehension, with the names that it binds."""

    node: ast.AST
    outer: Scope | None = None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: dict[str, type[ast.stmt]] = field(default_factory=dict)  # names that are Global or Nonlocal here
    stars: list[Binding] = field(default_factory=list)  # `import *`, each may bind any name

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def module(self) -> Scope:
        return self if self.outer is None else self.outer.module

    @property
    def around(self) -> Scope | None:
        """The next scope in which a name is looked for, skipping classes; None for a module."""
        scope = self.outer
        while scope is not None and scope.is_class:
            scope = scope.outer
        return scope

    def bindings(self, name: str) -> list[Binding]:
        """Returns the bindings of the name that an expression here sees; none for a builtin or an unknown name."""
        if self.elsewhere.get(name) is ast.Global:
            return self.module.bindings(name)
        bindings = self.names.get(name, self.stars)
        if self.around is None or (bindings and not self.is_class):
            return bindings
        return [*bindings, *self.around.bindings(name)]  # a class takes a name that it has not bound yet from around it

    def bind(self, name: str, binding: Binding) -> None:
        if binding.is_star:
            self.stars.append(binding)
            for bindings in self.names.values():
                bindings.append(binding)
        else:
            self.names.setdefault(name, [*self.stars]).append(binding)


def since(line: int | float, bindings: list[Binding]) -> list[Binding]:
    """Returns the bindings that may count in a line of the module.

    These are the last certain binding before it, all bindings behind that, and bindings from inside of functions.
    """
    last = max((number for number, one in enumerate(bindings) if one.is_certain and one.line < line), default=0)
    return [binding for number, binding in enumerate(bindings) if number >= last or binding.is_from_inside]


at_last = partial(since, math.inf)  # for code that runs when the module has run


class FileScopes:
    """A file's scopes: `around[node]`, where a function is defined or a call stands, and `inside[node]`, its own."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree)
        self.around: dict[ast.AST, Scope] = {}
        self.inside: dict[ast.AST, Scope] = {}
        self._nonlocal: list[tuple[str, Scope, Binding]] = []  # until all scopes are known
        for statement in tree.body:
            self._read(statement, self.module, is_certain=True)
        for name, scope, binding in self._nonlocal:
            _bind_nonlocal(name, scope, binding)

    def seen_by(self, function: ast.FunctionDef) -> Scope:
        """Returns the scope in which the names of the function's body are looked for, after its own."""
        scope = self.around[function]
        return scope.around if scope.is_class and scope.around is not None else scope

    def is_own(self, name: str, function: ast.FunctionDef) -> bool:
        """Returns whether the function itself binds the name: only after that is it looked for in the module."""
        return name in self.inside[function].names

    def path(self, node: ast.expr, scope: Scope) -> str:
        """Returns the path that an expression names in a module, "triton.jit"; "" if it may be anything else."""
        if isinstance(node, ast.Attribute):
            inner = self.path(node.value, scope)
            return f"{inner}.{node.attr}" if inner else ""
        paths = set()
        for binding in since(node.lineno, scope.bindings(node.id)) if isinstance(node, ast.Name) else ():
            if isinstance(binding.made_by, ast.Constant):
                continue  # None where an import fails: no decorator and no class is made of it
            if isinstance(binding.made_by, (ast.Attribute, ast.Name)) and binding.line < node.lineno:
                paths.add(self.path(binding.made_by, binding.scope))
            else:
                paths.add(binding.path)
        return paths.pop() if len(paths) == 1 else ""

    def _read(self, node: ast.AST, scope: Scope, is_certain: bool = False) -> None:
        if isinstance(node, FUNCTIONS):
            self._function(node, scope, is_certain)
        elif isinstance(node, ast.ClassDef):
            self._bind(node.name, scope, Binding(node.lineno, scope, node, is_certain=is_certain))
            self._read_all([*node.decorator_list, *node.bases, *node.keywords], scope)
            inner = self.inside[node] = Scope(node, scope, elsewhere=_scopes_declared(node.body))
            self._read_all([*_type_parameters(node), *node.body], inner)
        elif isinstance(node, ast.Call):
            self.around[node] = scope
            self._read_all(ast.iter_child_nodes(node), scope)
        elif isinstance(node, COMPREHENSIONS):
            self._read_all(ast.iter_child_nodes(node), Scope(node, scope))
        elif isinstance(node, ast.If) and _is_main(node.test):
            self._read_all(node.orelse, scope)  # the body runs in no process that imports the file
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            self._assignment(node, scope, is_certain)
        elif isinstance(node, ast.NamedExpr):
            self._read(node.value, scope)
            scope = _around_comprehensions(scope)
            self._bind(node.target.id, scope, Binding(node.lineno, scope))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, path in _imported(node):
                is_this = is_certain and name != "*"
                self._bind(name, scope, Binding(node.lineno, scope, path=path, is_certain=is_this))
        else:
            for name, line in _bound_by(node):
                self._bind(name, scope, Binding(line, scope))
            self._read_all(ast.iter_child_nodes(node), scope)

    def _read_all(self, nodes: Iterable[ast.AST], scope: Scope) -> None:
        for node in nodes:
            self._read(node, scope)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope, is_certain: bool
    ) -> None:
        inner = self.inside[node] = Scope(node, scope)
        self.around[node] = scope
        if not isinstance(node, ast.Lambda):
            self._bind(node.name, scope, Binding(line_of(node), scope, node, is_certain=is_certain))
            self._read_all([*node.decorator_list, *filter(None, [node.returns])], scope)
            inner.elsewhere = _scopes_declared(node.body)
        self._read(node.args, scope)
        for argument in ast.iter_child_nodes(node.args):
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
            elif node.simple and isinstance(scope.node, FUNCTIONS):
                self._bind(target.id, scope, Binding(node.lineno, scope))  # `x: int` alone makes it the function's own

    def _bind(self, name: str, scope: Scope, binding: Binding) -> None:
        declared, inside = scope.elsewhere.get(name), Binding(binding.line, scope, is_from_inside=True)
        if declared is None:
            scope.bind(name, binding)
        elif declared is ast.Global:
            self.module.bind(_mangled(name, scope), inside)
        else:
            self._nonlocal.append((name, scope, inside))


def _bind_nonlocal(name: str, scope: Scope, binding: Binding) -> None:
    """Binds a nonlocal name in the next function around that has it."""
    around = scope.around
    while around is not None and around.outer is not None:
        if name in around.names:
            around.bind(name, binding)
            return
        around = around.around


def _mangled(name: str, scope: Scope | None) -> str:
    """Returns a name as Python has it in a class: __x in a class K is _K__x."""
    while scope is not None and not scope.is_class:
        scope = scope.outer
    is_private = name.startswith("__") and not name.endswith("__")
    owner = scope.node.name.lstrip("_") if scope is not None and isinstance(scope.node, ast.ClassDef) else ""
    return f"_{owner}{name}" if is_private and owner else name


def _around_comprehensions(scope: Scope) -> Scope:
    """Returns the scope in which `:=` in a comprehension binds its name."""
    while isinstance(scope.node, COMPREHENSIONS) and scope.outer is not None:
        scope = scope.outer
    return scope


def _bound_by(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yields the name that a node of the tree binds by itself, with its line."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, node.lineno
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name, node.lineno
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, node.lineno
    elif isinstance(node, TYPE_PARAMETERS):
        yield node.name, node.lineno


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yields names with their paths. The path of a module in the file's own folder begins with a dot."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"
        else:
            top = alias.name.partition(".")[0]
            yield alias.asname or top, alias.name if alias.asname else top


def _is_main(test: ast.expr) -> bool:
    """Returns whether this is the test __name__ == "__main__"."""
    parts = [test.left, *test.ops, *test.comparators] if isinstance(test, ast.Compare) else []
    sides = [getattr(part, "id", getattr(part, "value", type(part))) for part in parts]
    return sides == ["__name__", ast.Eq, "__main__"]


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields these nodes and all within them, except within functions and classes."""
    for node in nodes:
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield from own_nodes(ast.iter_child_nodes(node))


def _scopes_declared(body: list[ast.stmt]) -> dict[str, type[ast.stmt]]:
    declared = (node for node in own_nodes(body) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return {name: type(node) for node in declared for name in node.names}


def _type_parameters(node: ast.AST) -> list[ast.AST]:
    return getattr(node, "type_params", [])  # since Python 3.12


def line_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns the line where Python says that the function begins: that of its first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
