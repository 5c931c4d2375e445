"""The whole numbers that stand in a file: where a rule of its own may begin or end."""

from __future__ import annotations

import ast
import operator

FOLDED = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}  # fmt: skip
MOST = 1 << 31  # no size is larger
MOST_EXPONENT = 31


def whole_numbers(tree: ast.Module | None) -> list[int]:
    """Returns each number of the text from 3 on once, also as 1 << 17 or 2 * 1024; sorted; [] without a tree."""
    found = {_value(node) for node in ast.walk(tree)} if tree is not None else set()
    return sorted(number for number in found if number is not None and 3 <= number <= MOST)


def _value(node: ast.AST) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and node.value <= MOST else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in FOLDED:
        return None
    left, right = _value(node.left), _value(node.right)
    if left is None or right is None or (isinstance(node.op, ast.LShift | ast.Pow) and not 0 <= right <= MOST_EXPONENT):
        return None
    number = FOLDED[type(node.op)](left, right)
    return number if abs(number) <= MOST else None
