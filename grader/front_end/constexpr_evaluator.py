"""A constexpr function of a learner's file, evaluated: plain Python on plain values, and no Python of the file runs.

Names are the function's own, those of its file's scope, and some of Python's builtins. Attributes are those of
grader.front_end.allowed_attributes. A construct that is not here is refused by its name.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import triton.language as tl

from grader.front_end.allowed_attributes import attribute, by_name, has_by_name

BUILTINS = {
    one.__name__: one
    for one in (
        abs, all, any, bool, dict, divmod, enumerate, float, int, isinstance, len, list, max, min, pow, print, range,
        reversed, round, set, slice, sorted, str, sum, tuple, zip,
    )
} | {"getattr": by_name, "hasattr": has_by_name}  # fmt: skip
BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_}
COMPARED = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items, ast.NotIn: lambda item, items: item not in items,
}  # fmt: skip
MOST_DEPTH = 64  # of functions that call themselves


class NotEvaluated(Exception):
    """A constexpr function holds what is not evaluated here; the message says what, and in which line."""


class _Returned(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Broken(Exception):
    pass


class _Continued(Exception):
    pass


def evaluator(function: ast.FunctionDef, scope: dict[str, Any]) -> Callable[..., Any]:
    """Returns what stands for the function: called with its arguments, it gives its result."""
    depth = 0

    def evaluated(*arguments: Any, **named: Any) -> Any:
        nonlocal depth
        if depth == MOST_DEPTH:
            raise RecursionError(f"{function.name} calls itself more than {MOST_DEPTH} times")
        depth += 1
        try:
            return Evaluation(scope, _bound(function, scope, arguments, named)).result(function.body)
        finally:
            depth -= 1

    return evaluated


def _bound(function: ast.FunctionDef, scope: dict, arguments: tuple, named: dict) -> dict[str, Any]:
    """Returns the function's parameters with their values. Raises TypeError as a call would."""
    places = [*function.args.posonlyargs, *function.args.args]
    names = [one.arg for one in (*places, *function.args.kwonlyargs)]
    defaults = dict(zip([one.arg for one in reversed(places)], reversed(function.args.defaults)))
    keywords = zip(function.args.kwonlyargs, function.args.kw_defaults)
    defaults |= {one.arg: default for one, default in keywords if default is not None}
    if function.args.vararg or function.args.kwarg:
        raise NotEvaluated(f"line {function.lineno}: a constexpr function takes no * and ** here")
    bound = dict(zip((one.arg for one in places), arguments))
    if len(arguments) > len(places) or bound.keys() & named.keys() or named.keys() - set(names):
        raise TypeError(f"{function.name} takes the arguments {', '.join(names)}")
    bound |= named
    for name in names:
        if name not in bound:
            if name not in defaults:
                raise TypeError(f"{function.name} needs the argument {name}")
            bound[name] = Evaluation(scope, {}).value(defaults[name])
    return bound


class Evaluation:
    """One call: `own` holds the values of its own names."""

    def __init__(self, scope: dict[str, Any], own: dict[str, Any]) -> None:
        self.scope, self.own = scope, own

    def result(self, body: list[ast.stmt]) -> Any:
        try:
            self._run(body)
        except _Returned as returned:
            return returned.value
        return None

    # ---- statements -------------------------------------------------------------------------------------

    def _run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            getattr(self, f"_{type(statement).__name__.lower()}", self._refused)(statement)

    def _refused(self, node: ast.AST) -> Any:
        what = ast.unparse(node).splitlines()[0][:60]
        raise NotEvaluated(f"line {node.lineno}: a constexpr function cannot hold `{what}` here")

    def _return(self, node: ast.Return) -> None:
        raise _Returned(None if node.value is None else self.value(node.value))

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _break(self, node: ast.Break) -> None:
        raise _Broken

    def _continue(self, node: ast.Continue) -> None:
        raise _Continued

    def _expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._store(target, value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._store(node.target, self.value(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self._refused(node)
        before = self._name_of(node.target.id, node)
        self.own[node.target.id] = BINARY[type(node.op)](before, self.value(node.value))

    def _store(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.own[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = list(value)
            if len(values) != len(target.elts):
                raise ValueError(f"{len(values)} values for {len(target.elts)} names")
            for one, item in zip(target.elts, values):
                self._store(one, item)
        elif isinstance(target, ast.Subscript):
            holder = self.value(target.value)
            if type(holder) not in (list, dict):
                self._refused(target)
            holder[self.value(target.slice)] = value
        else:
            self._refused(target)

    def _if(self, node: ast.If) -> None:
        self._run(node.body if self.value(node.test) else node.orelse)

    def _for(self, node: ast.For) -> None:
        for item in self.value(node.iter):
            self._store(node.target, item)
            try:
                self._run(node.body)
            except _Continued:
                continue
            except _Broken:
                return
        self._run(node.orelse)

    def _while(self, node: ast.While) -> None:
        while self.value(node.test):
            try:
                self._run(node.body)
            except _Continued:
                continue
            except _Broken:
                return
        self._run(node.orelse)

    def _assert(self, node: ast.Assert) -> None:
        if not self.value(node.test):
            raise AssertionError(self.value(node.msg) if node.msg else ast.unparse(node.test))

    # ---- expressions ------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        return getattr(self, f"_value_{type(node).__name__.lower()}", self._refused)(node)

    def _value_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _value_name(self, node: ast.Name) -> Any:
        return self._name_of(node.id, node)

    def _name_of(self, name: str, node: ast.AST) -> Any:
        for names in (self.own, self.scope, BUILTINS):
            if name in names and not name.startswith("__"):
                value = names[name]
                return value.value if isinstance(value, tl.constexpr) else value
        raise NameError(f"{name} is not defined (line {node.lineno})")

    def _value_attribute(self, node: ast.Attribute) -> Any:
        return attribute(self.value(node.value), node.attr)

    def _value_subscript(self, node: ast.Subscript) -> Any:
        return self.value(node.value)[self.value(node.slice)]

    def _value_slice(self, node: ast.Slice) -> slice:
        return slice(*(part and self.value(part) for part in (node.lower, node.upper, node.step)))

    def _value_tuple(self, node: ast.Tuple) -> tuple:
        return tuple(self.value(one) for one in node.elts)

    def _value_list(self, node: ast.List) -> list:
        return [self.value(one) for one in node.elts]

    def _value_dict(self, node: ast.Dict) -> dict:
        if None in node.keys:
            self._refused(node)
        return {self.value(key): self.value(one) for key, one in zip(node.keys, node.values)}

    def _value_binop(self, node: ast.BinOp) -> Any:
        apply = BINARY.get(type(node.op)) or self._refused(node)
        return apply(self.value(node.left), self.value(node.right))

    def _value_unaryop(self, node: ast.UnaryOp) -> Any:
        return UNARY[type(node.op)](self.value(node.operand))

    def _value_boolop(self, node: ast.BoolOp) -> Any:
        stops_at = isinstance(node.op, ast.Or)
        value = None
        for one in node.values:
            value = self.value(one)
            if bool(value) == stops_at:
                break
        return value

    def _value_compare(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for compared, right in zip(node.ops, map(self.value, node.comparators)):
            if not COMPARED[type(compared)](left, right):
                return False
            left = right
        return True

    def _value_ifexp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def _value_joinedstr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.value(one)) for one in node.values)

    def _value_formattedvalue(self, node: ast.FormattedValue) -> str:
        return format(self.value(node.value), self.value(node.format_spec) if node.format_spec else "")

    def _value_call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            self._refused(node)
        named = {one.arg: self.value(one.value) for one in node.keywords}
        if function is print and named.keys() - {"sep", "end"}:
            self._refused(node)  # another stream
        return function(*map(self.value, node.args), **named)
