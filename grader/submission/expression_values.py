"""Values of whole-number expressions in a file's text, for a call whose sizes and strides are known.

The text is read, and nothing of it is run: numbers, names bound to them, shapes and strides of arguments, arithmetic
and comparisons. All else has the value UNKNOWN, and so has all that depends on it. A text may hold anything: no tuple
lies in a tuple, tuples are short, numbers bounded, and a budget limits how many expressions are read.
"""

from __future__ import annotations

import ast
import operator
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np

from grader.numerics.call_facts import CallFacts, TensorFacts, contiguous_facts

UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()
MOST = 1 << 62  # numbers beyond it are unknown
MOST_SHIFT = 40
MOST_ITEMS = 100  # of a tuple, and arguments of a call
MOST_DIMENSIONS = 8  # of a tensor that the file makes
MOST_DEPTH = 60  # expressions within expressions, and names for names
OPERATOR = "module operator"  # what a name stands for that is bound to this module
DTYPES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
          "uint8": 1}  # fmt: skip  # bytes of an element

ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Div: operator.truediv,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.eq, ast.IsNot: operator.ne,
}  # fmt: skip

OF_TWO = "gt", "ge", "lt", "le", "eq", "ne"  # comparisons, by their names in the module operator
BY_NAME: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in (*OF_TWO, "mod", "floordiv", "add", "sub", "mul")
}

Binding = Callable[["Reading"], Any]  # what a name stands for, in a call


class OutOfBudget(Exception):
    """More expressions were to be read than a search may read."""


@dataclass(eq=False)
class Budget:
    """How many expressions may still be read, and how many places be looked through for a name."""

    left: int

    def spend(self) -> None:
        """Raises OutOfBudget if nothing is left."""
        self.left -= 1
        if self.left < 0:
            raise OutOfBudget


@dataclass(eq=False)
class NamesAt:
    """Names and what they stand for at one place of a file; `outer` has those that were bound before."""

    names: dict[str, Binding] = field(default_factory=dict)
    outer: NamesAt | None = None


@dataclass
class Reading:
    """Reads expressions for one call. Each name is looked up once."""

    facts: CallFacts
    budget: Budget
    _known: dict[Binding, Any] = field(default_factory=dict)
    _depth: int = 0

    def named(self, binding: Binding) -> Any:
        if binding not in self._known:
            self._known[binding] = UNKNOWN  # what a name is worth that is made of itself
            self._known[binding] = binding(self)
        return self._known[binding]

    def value(self, node: ast.AST, scope: NamesAt) -> Any:
        """Returns the value of an expression: a number, a bool, an array of these, a text, None, a tuple, a tensor's
        facts, a function of BY_NAME, or UNKNOWN. Raises OutOfBudget."""
        self.budget.spend()
        read = READERS.get(type(node))
        if read is None or self._depth > MOST_DEPTH:
            return UNKNOWN
        self._depth += 1
        try:
            return _bounded(read(self, node, scope))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return UNKNOWN
        finally:
            self._depth -= 1

    def items(self, nodes: Sequence[ast.expr], scope: NamesAt) -> tuple[list[Any], bool]:
        """Returns the values of several expressions, and True; up to an expression with a star whose number of values
        is not known, and False."""
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                several = self.value(node.value, scope)
                if type(several) is not tuple:
                    return items, False
                items += several
            else:
                items.append(self.value(node, scope))
            if len(items) > MOST_ITEMS:
                return items, False
        return items, True


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray | np.generic)


def _bounded(value: Any) -> Any:
    """Returns the value; UNKNOWN for a number that is too large, and for a tuple of more than single values."""
    if type(value) is tuple:
        return value if len(value) <= MOST_ITEMS and not any(isinstance(item, tuple) for item in value) else UNKNOWN
    return UNKNOWN if isinstance(value, int) and abs(value) > MOST else value


def _name(reading: Reading, node: ast.Name, scope: NamesAt) -> Any:
    place: NamesAt | None = scope
    while place is not None:
        if node.id in place.names:
            return reading.named(place.names[node.id])
        reading.budget.spend()
        place = place.outer
    return UNKNOWN


def _constant(reading: Reading, node: ast.Constant, scope: NamesAt) -> Any:
    return node.value if isinstance(node.value, int | float | str | None) else UNKNOWN


def _sequence(reading: Reading, node: ast.Tuple | ast.List, scope: NamesAt) -> Any:
    items, is_whole = reading.items(node.elts, scope)
    return tuple(items) if is_whole else UNKNOWN


def _attribute(reading: Reading, node: ast.Attribute, scope: NamesAt) -> Any:
    if node.attr in DTYPES:
        return node.attr
    value = reading.value(node.value, scope)
    if isinstance(value, str) and value == OPERATOR:
        return BY_NAME.get(node.attr, UNKNOWN)
    if isinstance(value, TensorFacts):
        attributes = {"shape": value.shape, "dtype": value.dtype or UNKNOWN, "ndim": len(value.shape)}
        return attributes.get(node.attr, UNKNOWN)
    return value if node.attr == "element_ty" and isinstance(value, str) else UNKNOWN


def _subscript(reading: Reading, node: ast.Subscript, scope: NamesAt) -> Any:
    value = reading.value(node.value, scope)
    if isinstance(node.slice, ast.Slice):
        ends = [one and reading.value(one, scope) for one in (node.slice.lower, node.slice.upper, node.slice.step)]
        place: Any = slice(*ends) if all(type(end) in (int, type(None)) for end in ends) else UNKNOWN
    else:
        place = reading.value(node.slice, scope)
    return value[place] if type(value) is tuple and type(place) in (int, slice) else UNKNOWN


def _arithmetic(reading: Reading, node: ast.BinOp, scope: NamesAt) -> Any:
    left, right = reading.value(node.left, scope), reading.value(node.right, scope)
    if type(node.op) not in ARITHMETIC or not (is_number(left) and is_number(right)):
        return UNKNOWN
    if isinstance(node.op, ast.LShift | ast.RShift) and not (type(right) is int and 0 <= right <= MOST_SHIFT):
        return UNKNOWN
    return ARITHMETIC[type(node.op)](left, right)


def _unary(reading: Reading, node: ast.UnaryOp, scope: NamesAt) -> Any:
    value = reading.value(node.operand, scope)
    if isinstance(node.op, ast.Not):
        return np.logical_not(value) if is_number(value) or value is None else UNKNOWN
    if isinstance(node.op, ast.USub) and is_number(value):
        return -value
    return UNKNOWN


def _comparison(reading: Reading, node: ast.Compare, scope: NamesAt) -> Any:
    values = [reading.value(part, scope) for part in (node.left, *node.comparators)]
    holds: Any = True
    for op, left, right in zip(node.ops, values, values[1:]):
        if type(op) not in COMPARISONS:
            return UNKNOWN
        if _is_one_none(op, left, right):
            holds = np.logical_and(holds, isinstance(op, ast.IsNot | ast.NotEq))
            continue
        if not _can_be_compared(left, right):
            return UNKNOWN
        if type(left) is tuple:
            if not isinstance(op, ast.Eq | ast.NotEq):
                return UNKNOWN
            left, right = _are_equal(left, right), True
        holds = np.logical_and(holds, COMPARISONS[type(op)](left, right))
    return holds


def _is_one_none(op: ast.cmpop, left: Any, right: Any) -> bool:
    """Returns whether two values are asked to be the same, and one of them, of a known value, is None."""
    asked = isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq)
    return asked and left is not UNKNOWN and right is not UNKNOWN and (left is None) != (right is None)


def _are_equal(left: tuple[Any, ...], right: tuple[Any, ...]) -> Any:
    if len(left) != len(right):
        return False
    return np.logical_and.reduce(np.broadcast_arrays(True, *(one == other for one, other in zip(left, right))))


def _can_be_compared(left: Any, right: Any) -> bool:
    """Returns whether both are numbers, or both tuples of numbers, or each is a text or None."""
    if type(left) is type(right) is tuple:
        return all(map(is_number, left + right))
    texts = isinstance(left, str | None) and isinstance(right, str | None)
    return texts or (is_number(left) and is_number(right))


def _joined(reading: Reading, node: ast.BoolOp, scope: NamesAt) -> Any:
    """Returns the part that `and` or `or` chooses; where some are not known, its truth, if the others decide it."""
    decides = isinstance(node.op, ast.Or)
    values = [reading.value(one, scope) for one in node.values]
    known = [value for value in values if is_number(value) or value is None]
    if len(known) == len(values):
        return reduce(partial(_chosen, decides), values)
    return decides if any(bool(np.all(np.asarray(value, bool) == decides)) for value in known) else UNKNOWN


def _chosen(decides: bool, one: Any, other: Any) -> Any:
    truth = np.asarray(one, bool)
    if not truth.ndim:
        return one if bool(truth) == decides else other
    return UNKNOWN if other is None else np.where(truth == decides, one, other)


def _choice(reading: Reading, node: ast.IfExp, scope: NamesAt) -> Any:
    test, one, other = (reading.value(part, scope) for part in (node.test, node.body, node.orelse))
    if not is_number(test):
        return UNKNOWN
    if np.ndim(test) == 0:
        return one if test else other
    return np.where(test, one, other) if is_number(one) and is_number(other) else UNKNOWN


# ---- calls -----------------------------------------------------------------------------------------------------------


def _call(reading: Reading, node: ast.Call, scope: NamesAt) -> Any:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    arguments, is_whole = reading.items(node.args, scope)
    if not is_whole:
        return UNKNOWN
    if name in MAKE_TENSORS:
        named = {keyword.arg: reading.value(keyword.value, scope) for keyword in node.keywords if keyword.arg}
        return _new_tensor(name, arguments, named)
    if name in OF_TENSORS and isinstance(node.func, ast.Attribute) and not node.keywords:
        value = reading.value(node.func.value, scope)
        return OF_TENSORS[name](value, *arguments) if isinstance(value, TensorFacts) else UNKNOWN
    if name in FUNCTIONS and arguments and all(map(is_number, arguments)):
        return FUNCTIONS[name](*arguments)
    if isinstance(node.func, ast.Attribute) and is_of_a_number(node):
        return BY_NAME[name.strip("_")](*_numbers(reading.value(node.func.value, scope), *arguments))
    function = reading.value(node.func, scope)
    return function(*_numbers(*arguments)) if callable(function) else UNKNOWN


def is_of_a_number(call: ast.Call) -> bool:
    """Returns whether a call is an operator in the form of a method, as N.__gt__(1000)."""
    name = getattr(call.func, "attr", "")
    return name.startswith("__") and name.strip("_") in BY_NAME


def _numbers(one: Any, other: Any) -> tuple[Any, Any]:
    """Returns both; raises TypeError unless they are numbers."""
    if not (is_number(one) and is_number(other)):
        raise TypeError("not two numbers")
    return one, other


def _size(x: TensorFacts, dimension: int | None = None) -> Any:
    return x.shape if dimension is None else x.shape[dimension]


def _stride(x: TensorFacts, dimension: int | None = None) -> Any:
    return x.strides if dimension is None else x.strides[dimension]


def _is_contiguous(x: TensorFacts) -> Any:
    plain = contiguous_facts(x.shape).strides
    fits = [np.logical_or(size == 1, own == other) for size, own, other in zip(x.shape, x.strides, plain)]
    return np.logical_and.reduce(np.broadcast_arrays(True, *fits))


def _address(x: TensorFacts) -> Any:
    """Returns a number for the tensor's address: a memory of its own begins at a multiple of 16 MiB."""
    return (zlib.crc32(x.memory.encode()) << 24) + x.offset * DTYPES[x.dtype] if x.memory else UNKNOWN


OF_TENSORS: dict[str, Callable[..., Any]] = {
    "is_contiguous": _is_contiguous, "data_ptr": _address, "storage_offset": lambda x: x.offset,
    "element_size": lambda x: DTYPES[x.dtype],
    "size": _size, "stride": _stride, "numel": lambda x: x.elements, "dim": lambda x: len(x.shape),
    "contiguous": lambda x: contiguous_facts(x.shape, x.dtype),
}  # fmt: skip
MAKE_TENSORS = ("empty", "zeros", "ones", "empty_like", "zeros_like")


def _new_tensor(name: str, arguments: list[Any], named: Mapping[str, Any]) -> Any:
    """Returns the facts of a new tensor, which is contiguous."""
    dtype = named.get("dtype", "")
    if name.endswith("_like"):
        like = arguments[0]
        return contiguous_facts(like.shape, dtype or like.dtype) if isinstance(like, TensorFacts) else UNKNOWN
    shape = arguments[0] if len(arguments) == 1 and type(arguments[0]) is tuple else tuple(arguments)
    if len(shape) > MOST_DIMENSIONS or not all(map(is_number, shape)):
        return UNKNOWN
    return contiguous_facts(shape, dtype if isinstance(dtype, str) else "")


def _next_power_of_2(number: Any) -> Any:
    if isinstance(number, int):
        return 1 << max(number - 1, 0).bit_length()
    if not np.issubdtype(np.asarray(number).dtype, np.integer):
        return UNKNOWN
    return 1 << np.ceil(np.log2(np.maximum(number, 1))).astype(np.int64)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cdiv": lambda a, b: -(-a // b), "constexpr": lambda a: a, "next_power_of_2": _next_power_of_2,
    "min": lambda *values: _least(values), "minimum": lambda a, b: _least((a, b)),
    "max": lambda *values: -_least([-value for value in values]), "maximum": lambda a, b: -_least((-a, -b)),
}  # fmt: skip


def _least(values: Sequence[Any]) -> Any:
    whole = all(isinstance(value, int) for value in values)
    return min(values) if whole else np.minimum.reduce(np.broadcast_arrays(*values))


READERS: dict[type, Callable[[Reading, Any, NamesAt], Any]] = {
    ast.Name: _name, ast.Constant: _constant, ast.Tuple: _sequence, ast.List: _sequence, ast.Attribute: _attribute,
    ast.Subscript: _subscript, ast.BinOp: _arithmetic, ast.UnaryOp: _unary, ast.Compare: _comparison,
    ast.BoolOp: _joined, ast.IfExp: _choice, ast.Call: _call,
}  # fmt: skip
