"""Conditions that are tiles, refused where they stand.

Triton refuses them only in an `if` statement. For `a if x > 0 else b` and for `while` it makes operations that MLIR's
verifier refuses later: without a line, and with the whole module printed.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any

import triton.language as tl

from grader.front_end.triton_visitor_api import CodeGenerator

TILE = "Boolean value of Tensor with more than one value is ambiguous"  # as Triton says of an `if` statement


class Condition(ast.expr):
    """Stands for the condition `test` while the compiler visits what depends on it."""

    _fields = ("test",)
    test: ast.expr
    if TYPE_CHECKING:  # every node takes its fields in order

        def __init__(self, test: ast.expr) -> None: ...


def refuse_tiles_as_conditions() -> None:
    """Makes Triton's front end refuse tiles as conditions. Called once in a process."""
    CodeGenerator.visit_Condition = _visit_condition
    for name in ("visit_IfExp", "visit_While"):
        setattr(CodeGenerator, name, _with_condition(getattr(CodeGenerator, name)))


def _with_condition(visit: Any) -> Any:
    def visit_with_condition(generator: CodeGenerator, node: ast.IfExp | ast.While) -> Any:
        node = copy.copy(node)  # the tree is the function's, and is visited again
        node.test = Condition(node.test)
        return visit(generator, node)

    return visit_with_condition


def _visit_condition(generator: CodeGenerator, node: Condition) -> Any:
    value = generator.visit(node.test)
    if isinstance(value, tl.tensor) and value.type.is_block():
        raise generator._unsupported(node.test, TILE)
    return value
