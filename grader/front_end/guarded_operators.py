"""Operators, texts and calls of a kernel that would tell the objects of one process from the objects of another.

Triton's front end carries them out as Python does, on the very objects. A kernel may ask only for properties of a value
that grader.front_end.same_values gives; the rest is refused where it stands.
"""

from __future__ import annotations

import ast
import copy
import functools
from typing import TYPE_CHECKING, Any

import triton.language as tl

from grader.front_end.allowed_attributes import operator_looked_up
from grader.front_end.same_values import (
    NO_CLASS,
    NO_EQUALITY,
    NO_TEXT,
    NotFixed,
    has_equality,
    has_text,
    is_class_of_tuples,
    looks_for,
)
from grader.front_end.triton_visitor_api import CodeGenerator

COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})


ATOMICS = tuple(getattr(tl, name) for name in dir(tl) if name.startswith("atomic_"))
# Triton up to 3.8 makes a text of it that no compiler takes, and says this of tl.store alone.
BLOCK_AT_ADDRESS = "Value argument cannot be block type if pointer argument is not a block"
MASK_OF_NUMBERS = "Mask must have boolean scalar type"  # as Triton says of tl.store; no compiler takes such a tl.load


class Shown(ast.expr):
    """Stands for the value `shown` of an f-string while the compiler visits it."""

    _fields = ("shown",)
    shown: ast.expr
    if TYPE_CHECKING:  # every node takes its fields in order

        def __init__(self, shown: ast.expr) -> None: ...


@functools.cache
def guard_operators_of(path: str) -> None:
    """Makes Triton's front end refuse them in functions of this file."""
    apply, call, visit = (
        getattr(CodeGenerator, name) for name in ("_apply_binary_method", "call_Function", "visit_JoinedStr")
    )

    def apply_binary_method(generator: CodeGenerator, node: ast.AST, operator: Any, left: Any, right: Any) -> Any:
        if generator.file_name != path:
            return apply(generator, node, operator, left, right)
        method = operator if isinstance(operator, str) else operator[0]
        _check_operands(method, left, right)
        with operator_looked_up(left, method):
            return apply(generator, node, operator, left, right)

    def call_function(
        generator: CodeGenerator, node: ast.AST, function: Any, args: list[Any], kws: dict[str, Any]
    ) -> Any:
        if generator.file_name == path:
            _check_call(generator, node, function, args, kws)
        return call(generator, node, function, args, kws)

    def visit_joined_str(generator: CodeGenerator, node: ast.JoinedStr) -> Any:
        if generator.file_name == path:
            node = copy.copy(node)  # the tree is the function's, and is visited again
            node.values = [_as_shown(part) if isinstance(part, ast.FormattedValue) else part for part in node.values]
        return visit(generator, node)

    CodeGenerator._apply_binary_method = apply_binary_method
    CodeGenerator.call_Function = call_function
    CodeGenerator.visit_JoinedStr = visit_joined_str
    CodeGenerator.visit_Shown = _visit_shown


def _as_shown(node: ast.FormattedValue) -> ast.FormattedValue:
    node = copy.copy(node)
    node.value = ast.copy_location(Shown(node.value), node.value)
    return node


def _visit_shown(generator: CodeGenerator, node: Shown) -> Any:
    value = generator.visit(node.shown)
    if isinstance(value, tl.constexpr) and not has_text(value):
        raise NotFixed(NO_TEXT)
    return value


def _check_operands(method: str, left: Any, right: Any) -> None:
    if isinstance(_bare(left), str) and not has_text(right):  # "%s" % right
        raise NotFixed(NO_TEXT)
    if method in COMPARISONS and not (has_equality(left) and has_equality(right)):
        raise NotFixed(NO_EQUALITY)


def _check_call(
    generator: CodeGenerator, node: ast.AST, function: Any, arguments: list[Any], by_name: dict[str, Any]
) -> None:
    if looks_for(function):  # (1.0, nan).index(nan)
        operands, is_key = [function.__self__, *arguments], True
    else:
        is_one_of = any(function is CodeGenerator.builtin_namespace[name] for name in ("max", "min"))
        operands, is_key = arguments if is_one_of else [], False
    if not all(has_equality(argument, is_key) for argument in operands):
        raise NotFixed(NO_EQUALITY)
    if function is isinstance and is_class_of_tuples(arguments[-1]):
        raise NotFixed(NO_CLASS)
    if function in ATOMICS and len(arguments) > 1 and _is_address(arguments[0]) and _is_block(arguments[1]):
        raise generator._unsupported(node, BLOCK_AT_ADDRESS)
    if function is tl.load and _holds_numbers(by_name.get("mask", arguments[1] if len(arguments) > 1 else None)):
        raise generator._unsupported(node, MASK_OF_NUMBERS)


def _is_address(value: Any) -> bool:
    return isinstance(value, tl.tensor) and value.type.is_ptr()


def _holds_numbers(value: Any) -> bool:
    return isinstance(value, tl.tensor) and not value.type.scalar.is_int1()


def _is_block(value: Any) -> bool:
    return isinstance(value, tl.tensor) and value.type.is_block()


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value
