"""Python's builtins and operators that a constexpr function may use: tables of grader.front_end.constexpr_evaluator."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from grader.front_end.allowed_attributes import by_name, has_by_name

BUILTINS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        abs, all, any, bool, dict, divmod, enumerate, float, int, isinstance, len, list, max, min, pow, print, range,
        reversed, round, set, slice, sorted, str, sum, tuple, zip,
    )
} | {"getattr": by_name, "hasattr": has_by_name}  # fmt: skip
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd, ast.Sub: operator.isub, ast.Mult: operator.imul, ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv, ast.Mod: operator.imod, ast.Pow: operator.ipow, ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift, ast.BitAnd: operator.iand, ast.BitOr: operator.ior, ast.BitXor: operator.ixor,
}  # fmt: skip
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
}  # fmt: skip
CONVERTED: dict[int, Callable[[Any], Any]] = {-1: lambda one: one, 115: str, 114: repr, 97: ascii}  # {value!r}
COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items, ast.NotIn: lambda item, items: item not in items,
}  # fmt: skip
SUBSCRIPTED = (tuple, list, dict, str, range)  # their subscripts only return a part
COMPARING = (dict, set, min, max, sorted)  # builtins that compare their arguments
