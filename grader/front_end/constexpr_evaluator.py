"""A constexpr function of a learner's file, evaluated: plain Python on plain values, and no Python of the file runs.

It sees its own names, the names of its file's scope, and some of Python's builtins, and reads the attributes that
grader.front_end.allowed_attributes lists. A construct that is not here is refused by its name.
"""

from __future__ import annotations

import ast
import operator
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from inspect import Signature
from typing import Any, NoReturn

import triton.language as tl

from grader.front_end.allowed_attributes import attribute, by_name, has_by_name
from grader.front_end.bindings import FileScopes, own_nodes
from grader.front_end.same_values import (
    NO_CLASS,
    NO_EQUALITY,
    NO_ORDER,
    NO_TEXT,
    has_equality,
    has_order,
    has_text,
    is_class_of_tuples,
    looks_for,
)
from grader.front_end.told_values import Unseen

SINGLE = (None, True, False)  # Python has a single object of each
IS_A_GENERATOR = "`yield` makes a generator of the whole function; return a tuple"
NO_IDENTITY = "equal values may be two objects; write == or !="
MOST_DEPTH = 64  # of functions that call themselves

Placed = ast.stmt | ast.expr  # the nodes that have a line
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
BUILTINS: dict[str, Callable[..., Any]] = {
    builtin.__name__: builtin
    for builtin in (
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
CONVERTED: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, 115: str, 114: repr, 97: ascii}  # {value!r}
COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items, ast.NotIn: lambda item, items: item not in items,
}  # fmt: skip
SUBSCRIPTED = (tuple, list, dict, str, range)  # their subscripts only return a part
COMPARING = (dict, set, min, max, sorted)  # builtins that compare their arguments


class NotEvaluated(Exception):
    """A constexpr function holds what is not evaluated here; the message says what, and in which line."""


class CallsItself(RecursionError):
    """A constexpr function calls itself without end, or nearly."""


class _Returned(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Broken(Exception):
    pass


class _Continued(Exception):
    pass


def evaluator(function: ast.FunctionDef, scope: Mapping[str, Any], signature: Signature) -> Callable[..., Any]:
    """Returns a replacement of the function: called with its arguments, it returns its result.

    signature: of the function, with the values of its defaults. A call that does not fit it raises TypeError; a call
    may also raise NotEvaluated, CallsItself and any exception of the function.
    """
    depth, local = 0, _local_names(function)
    given_later = next((one for one in own_nodes(function.body) if isinstance(one, (ast.Yield, ast.YieldFrom))), None)

    def evaluated(*arguments: Any, **named: Any) -> Any:
        nonlocal depth
        if given_later is not None:
            refuse(given_later, IS_A_GENERATOR)
        if depth == MOST_DEPTH:
            raise CallsItself(f"{function.name} calls itself more than {MOST_DEPTH} times")
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        depth += 1
        try:
            return Evaluation(scope, bound.arguments, local).result(function.body)
        finally:
            depth -= 1

    return evaluated


def _local_names(function: ast.FunctionDef) -> frozenset[str]:
    """Returns the names that the function binds itself, in any of its statements; comprehensions bind their own."""
    return frozenset(FileScopes(ast.Module([function], [])).inside[function].names)


def _targets_of(node: Comprehension) -> Iterator[ast.AST]:
    for generator in node.generators:
        yield from ast.walk(generator.target)


def refuse(node: Placed, why: str = "") -> NoReturn:
    """Raises NotEvaluated, with the beginning of the refused text; why: the reason, and what to write instead."""
    what = ast.unparse(node).splitlines()[0][:60]
    raise NotEvaluated(f"line {node.lineno}: a constexpr function cannot hold `{what}` here{why and f': {why}'}")


class _WithoutNames(dict[Any, Any]):
    """A view of other names and their values, as they are when asked for, without some of them."""

    def __init__(self, names: Mapping[str, Any], hidden: set[str]) -> None:
        self._names, self._hidden = names, hidden

    def __contains__(self, name: object) -> bool:
        return name not in self._hidden and name in self._names

    def __missing__(self, name: str) -> Any:
        if name in self._hidden:
            raise KeyError(name)
        return self._names[name]


class Evaluation:
    """A call: `own` holds the values of its own names, `local` the names that are never looked for in other scopes."""

    def __init__(
        self, scope: Mapping[str, Any], own: MutableMapping[str, Any], local: frozenset[str] = frozenset()
    ) -> None:
        self.scope, self.own, self.local = scope, own, local

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

    def _refused(self, node: Placed) -> NoReturn:
        refuse(node)

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
        elif not isinstance(node.target, ast.Name):
            self._refused(node)  # Python evaluates the parts of its target

    def _augassign(self, node: ast.AugAssign) -> None:
        apply = self._operator(IN_PLACE, node)
        if isinstance(node.target, ast.Name):
            self.own[node.target.id] = apply(self._name_of(node.target.id, node), self.value(node.value))
        elif isinstance(node.target, ast.Subscript):
            holder, key = self._holder(node.target), self._key(node.target.slice)
            holder[key] = apply(holder[key], self.value(node.value))
        else:
            self._refused(node)

    def _holder(self, target: ast.Subscript) -> list[Any] | dict[Any, Any]:
        holder: list[Any] | dict[Any, Any] = self.value(target.value)
        return holder if type(holder) in (list, dict) else self._refused(target)

    def _store(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.own[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = list(value)
            if len(values) != len(target.elts):
                raise ValueError(f"{len(values)} values for {len(target.elts)} names")
            for place, item in zip(target.elts, values):
                self._store(place, item)
        elif isinstance(target, ast.Subscript):
            self._holder(target)[self._key(target.slice)] = value
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

    def _name_of(self, name: str, node: Placed) -> Any:
        for names in (self.own, self.scope, BUILTINS):
            if name in names and not name.startswith("__"):
                return self._if_plain(names[name], name, node)
            if name in self.local:
                raise UnboundLocalError(f"{name} has no value yet (line {node.lineno})")
        raise NameError(f"{name} is not defined (line {node.lineno})")

    def _if_plain(self, value: Any, name: str, node: Placed) -> Any:
        if isinstance(value, Unseen):
            raise NotEvaluated(f"line {node.lineno}: {name} is no number, text, type or function of Triton here")
        return value

    def _value_attribute(self, node: ast.Attribute) -> Any:
        return attribute(self.value(node.value), node.attr)

    def _value_subscript(self, node: ast.Subscript) -> Any:
        holder = self.value(node.value)
        of = holder.value if isinstance(holder, tl.constexpr) else holder
        return holder[self._key(node.slice)] if isinstance(of, SUBSCRIPTED) else self._refused(node)

    def _key(self, node: ast.expr) -> Any:
        """Returns the value of a key. Refuses a value whose equality may differ in the file's process."""
        value = self.value(node)
        return value if has_equality(value, is_key=True) else refuse(node, NO_EQUALITY)

    def _value_slice(self, node: ast.Slice) -> slice:
        return slice(*(part and self.value(part) for part in (node.lower, node.upper, node.step)))

    def _value_tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.value(element) for element in node.elts)

    def _value_list(self, node: ast.List) -> list[Any]:
        return [self.value(element) for element in node.elts]

    def _value_dict(self, node: ast.Dict) -> dict[Any, Any]:
        keys = [self._refused(node) if key is None else key for key in node.keys]
        return {self._key(key): self.value(item) for key, item in zip(keys, node.values)}

    def _value_binop(self, node: ast.BinOp) -> Any:
        apply = self._operator(BINARY, node)
        return apply(self.value(node.left), self.value(node.right))

    def _operator(
        self, table: Mapping[type[ast.operator], Callable[[Any, Any], Any]], node: ast.BinOp | ast.AugAssign
    ) -> Callable[[Any, Any], Any]:
        apply = table.get(type(node.op)) or self._refused(node)

        def checked(left: Any, right: Any) -> Any:
            of = left.value if isinstance(left, tl.constexpr) else left
            if isinstance(of, str) and not has_text(right):  # "%s" % right
                refuse(node, NO_TEXT)
            return apply(left, right)

        return checked

    def _value_unaryop(self, node: ast.UnaryOp) -> Any:
        return UNARY[type(node.op)](self.value(node.operand))

    def _value_boolop(self, node: ast.BoolOp) -> Any:
        stops_at = isinstance(node.op, ast.Or)
        value = None
        for part in node.values:
            value = self.value(part)
            if bool(value) == stops_at:
                break
        return value

    def _value_compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        for number, (compared, right) in enumerate(zip(node.ops, map(self.value, node.comparators)), 1):
            is_identity = isinstance(compared, (ast.Is, ast.IsNot))
            if is_identity and not any(value is single for value in (left, right) for single in SINGLE):
                refuse(node, NO_IDENTITY)
            is_among = isinstance(compared, (ast.In, ast.NotIn))
            if not is_identity and not (has_equality(left, is_among) and has_equality(right)):
                refuse(node, NO_EQUALITY)
            outcome = COMPARED[type(compared)](left, right)
            if number == len(node.ops) or not outcome:
                return outcome  # two constexpr values give a third
            left = right

    def _value_ifexp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def _value_joinedstr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.value(part)) for part in node.values)

    def _value_formattedvalue(self, node: ast.FormattedValue) -> str:
        value = self.value(node.value)
        if not has_text(value):
            refuse(node.value, NO_TEXT)
        return format(CONVERTED[node.conversion](value), self.value(node.format_spec) if node.format_spec else "")

    def _value_listcomp(self, node: ast.ListComp) -> list[Any]:
        return list(self._items(node, lambda inner: inner.value(node.elt)))

    def _value_setcomp(self, node: ast.SetComp) -> set[Any]:
        return set(self._items(node, lambda inner: inner._member(node.elt)))

    def _member(self, node: ast.expr) -> Any:
        value = self._key(node)
        return value if has_order(value) else refuse(node, NO_ORDER)

    def _value_dictcomp(self, node: ast.DictComp) -> dict[Any, Any]:
        return dict(self._items(node, lambda inner: (inner._key(node.key), inner.value(node.value))))

    def _value_generatorexp(self, node: ast.GeneratorExp) -> Iterator[Any]:
        return self._items(node, lambda inner: inner.value(node.elt))

    def _items(self, node: Comprehension, item: Callable[[Evaluation], Any]) -> Iterator[Any]:
        """Returns an iterator over the items of a comprehension, whose names are seen only in it."""
        own = {inner.id for inner in _targets_of(node) if isinstance(inner, ast.Name)}
        around = _WithoutNames(self.own, own)  # a name of its own has no value before it gets one
        inside = Evaluation(self.scope, ChainMap({}, around), self.local | own)
        first = self.value(node.generators[0].iter)
        return (item(inside) for _ in inside._rounds(node.generators, first))

    def _rounds(self, generators: list[ast.comprehension], items: Any) -> Iterator[None]:
        """Binds the names of the generators to their values, round after round, and yields once in each round."""
        generator, *rest = generators
        if generator.is_async:
            self._refused(generator.iter)
        for value in items:
            self._store(generator.target, value)
            if all(self.value(condition) for condition in generator.ifs):
                if rest:
                    yield from self._rounds(rest, self.value(rest[0].iter))
                else:
                    yield

    def _value_call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(one.arg is None for one in node.keywords):
            self._refused(node)
        arguments = [self.value(arg) for arg in node.args]
        named = {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        if function is print and named.keys() - {"sep", "end"}:
            self._refused(node)  # another stream
        if any(name.startswith("_") for name in named):
            self._refused(node)  # an argument that the compiler gives
        if any(function is builtin for builtin in COMPARING):
            arguments = [list(argument) if isinstance(argument, Iterator) else argument for argument in arguments]
        _check_call(node, function, arguments)
        return function(*arguments, **named)


def _check_call(node: ast.Call, function: Any, arguments: list[Any]) -> None:
    """Refuses a call that might return another value where the file runs by itself."""
    if function is str and not all(map(has_text, arguments)):
        refuse(node, NO_TEXT)
    if function is isinstance and is_class_of_tuples(arguments[-1:]):
        refuse(node, NO_CLASS)
    is_looking = looks_for(function)
    compared = arguments if any(function is builtin for builtin in COMPARING) else []
    compared = [function.__self__, *arguments] if is_looking else compared
    if not all(has_equality(value, is_looking) for value in compared):
        refuse(node, NO_EQUALITY)
    if function is set and not all(has_order(value) for argument in arguments for value in argument):
        refuse(node, NO_ORDER)
