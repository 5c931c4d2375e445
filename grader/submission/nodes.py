"""Nodes of a syntax tree: the lines that they cover, what a call names, and what a function takes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

Node = ast.stmt | ast.expr | ast.pattern  # with a place in the file


def last_line(node: Node) -> int:
    """Returns the line in which a node ends; Python's parser always tells it."""
    return node.end_lineno or node.lineno


def covers(node: Node, line: int) -> bool:
    """Returns whether a node begins in this line or before it, and ends there or after it."""
    return node.lineno <= line <= last_line(node)


def called_name(call: ast.Call) -> str:
    """Returns "load" for tl.load(...) and for load(...); "" for a call of anything without a name."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def is_method_call(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    """Returns whether a node is a call with a dot before this name, as tl.load(...) or tile.to(...)."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def calls_in(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """Yields the calls in these nodes, each node walked on its own."""
    return (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Call))


def statements_in(node: ast.AST) -> list[Node]:
    """Returns the statements and expressions in a node, in the order of the lines where they begin."""
    return sorted((inner for inner in ast.walk(node) if isinstance(inner, Node)), key=lambda inner: inner.lineno)


def names_in(node: ast.AST) -> list[str]:
    """Returns the names that stand in a node, as often as they do: `tl` of tl.load, and no `load`."""
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]


def positional_parameters(function: ast.FunctionDef) -> list[str]:
    """Returns the names of the parameters that arguments without a name go to, in their order."""
    return [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]


def all_parameters(function: ast.FunctionDef) -> list[str]:
    """Returns the names of the positional parameters, then of the keyword-only parameters."""
    return positional_parameters(function) + [parameter.arg for parameter in function.args.kwonlyargs]


def whole_number(node: ast.AST) -> int | None:
    """Returns the number that a node writes, as 128; None for anything else, True and 1.0 included."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
