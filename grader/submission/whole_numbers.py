"""The whole numbers in a file, written or computed from others: a rule of the file may begin or end at them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping

FOLDED = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.LShift: operator.lshift,
    ast.Pow: operator.pow, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
MOST = 1 << 31  # no size is larger
MOST_EXPONENT = 31


def whole_numbers(tree: ast.Module) -> list[int]:
    """Returns each number of the text from 3 to 2**31 once, also as 1 << 17 or 2 * BLOCK; sorted."""
    names = _constants(tree)
    numbers = {_value(node, names) for node in ast.walk(tree)}
    return sorted(number for number in numbers if number is not None and 3 <= number <= MOST)


def _constants(tree: ast.Module) -> dict[str, int]:
    """Returns the module's names for whole numbers. As a rule, a parameter of the same name is given that number."""
    names: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(target, node.value, names)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            _bind(node.target, node.value, names)
    return names


def _bind(target: ast.expr, value: ast.expr, names: dict[str, int]) -> None:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for name, its in zip(target.elts, value.elts):
            _bind(name, its, names)
    elif isinstance(target, ast.Name) and (number := _value(value, names)) is not None:
        names[target.id] = number


def _value(node: ast.AST, names: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and node.value <= MOST else None
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Call) and _is_constexpr(node):
        return _value(node.args[0], names)
    if not isinstance(node, ast.BinOp) or type(node.op) not in FOLDED:
        return None
    left, right = _value(node.left, names), _value(node.right, names)
    return None if left is None or right is None else _folded(node.op, left, right)


def _is_constexpr(call: ast.Call) -> bool:
    """Returns whether a call is tl.constexpr with one argument, as tl.constexpr(64)."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "constexpr" and len(call.args) == 1


def _folded(op: ast.operator, left: int, right: int) -> int | None:
    if isinstance(op, ast.LShift | ast.Pow) and not 0 <= right <= MOST_EXPONENT:
        return None
    if isinstance(op, ast.FloorDiv) and not right:
        return None
    number = FOLDED[type(op)](left, right)
    return number if abs(number) <= MOST else None
