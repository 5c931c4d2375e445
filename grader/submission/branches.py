"""The branches of a file: parts of its kernels and its entry that only some calls come to.

Each has conditions, which are read for a call whose sizes and strides are known. A condition whose value is not known,
such as a condition of loaded values, may hold in any call.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from grader.numerics.call_facts import CallFacts
from grader.submission.expression_values import (
    BY_NAME,
    OF_TWO,
    OPERATOR,
    UNKNOWN,
    Binding,
    Budget,
    NamesAt,
    Reading,
    is_number,
    is_of_a_number,
)

MOST_BRANCHES = 200
MOST_CALLS = 8  # of functions within functions
MOST_NODES = 20_000  # of the text that are looked at, those of a function once for each call of it
MOST_CONDITIONS = 30  # of a branch
MOST_READ = 2_000_000  # in all readings, 1 to 2 s; of the solutions 27 takes most, 226 thousand
CHOOSE = ("min", "max", "minimum", "maximum")  # of two: a comparison that is not written

Function = ast.FunctionDef


@dataclass(frozen=True, eq=False)
class Needed:
    """An expression that has to be true, or false."""

    node: ast.expr
    scope: NamesAt
    holds: bool


@dataclass(frozen=True, eq=False)
class Branch:
    """A part of the file that a call comes to where all conditions hold."""

    conditions: tuple[Needed, ...]
    budget: Budget

    @property
    def key(self) -> tuple[tuple[int, int, bool], ...]:
        """What another branch with the same conditions has, too: both arms of a condition that is looked at twice."""
        return tuple((id(condition.node), id(condition.scope), condition.holds) for condition in self.conditions)

    def missing(self, facts: CallFacts) -> Any:
        """Returns the number of conditions that do not hold in a call; an array for a call whose sizes are arrays.

        Raises OutOfBudget once the conditions of a file have been read too often.
        """
        reading, count = Reading(facts, self.budget), np.int64(0)
        with np.errstate(all="ignore"):
            for one in self.conditions:
                value = reading.value(one.node, one.scope)
                if is_number(value) or value is None:
                    count = count + (np.asarray(value, bool) != one.holds)
        return count


def branches_of(tree: ast.Module, entry: str, arguments: Sequence[str]) -> list[Branch]:
    """Returns the branches of the function `entry` and of all that it calls or launches in this file.

    arguments: the names of the entry's arguments, in order, as a call's facts have them.
    """
    return _Branches(tree).of_entry(entry, arguments)


class _Branches:
    def __init__(self, tree: ast.Module) -> None:
        self._functions = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
        self._module = NamesAt()
        for statement in tree.body:
            again = self._module.names.keys() & _names_in(statement)
            self._module.names |= dict(_assigned(statement, self._module, replaceable=True))
            self._module.names |= dict.fromkeys(again, _unknown)
        self._found: list[Branch] = []
        self._nodes = 0  # looked at so far
        self._budget = Budget(MOST_READ)

    def of_entry(self, entry: str, arguments: Sequence[str]) -> list[Branch]:
        function = self._functions.get(entry)
        if function is not None:
            names: dict[str, Binding] = {
                own: _argument(name) for own, name in zip(_parameters(function), arguments, strict=False)
            }
            with contextlib.suppress(RecursionError):  # what lies deeper is left out
                self._of_function(function, names, (), 0)
        return list({branch.key: branch for branch in self._found}.values())[:MOST_BRANCHES]

    @property
    def _is_enough(self) -> bool:
        return len(self._found) > MOST_BRANCHES or self._nodes > MOST_NODES

    def _of_function(
        self, function: Function, names: dict[str, Binding], under: tuple[Needed, ...], depth: int
    ) -> None:
        self._of_block(function.body, NamesAt(names, self._module), under, depth)

    def _of_block(self, block: Sequence[ast.stmt], scope: NamesAt, under: tuple[Needed, ...], depth: int) -> None:
        for statement in _without_match(block):
            self._nodes += 1
            if self._is_enough:
                return
            if isinstance(statement, Function | ast.ClassDef):
                continue
            if isinstance(statement, ast.For | ast.While):  # an earlier iteration may have changed them
                scope = _with_unknown(_names_in(statement), scope)
            for node in _own_expressions(statement):
                self._of_expression(node, scope, under, depth)
            if isinstance(statement, ast.If):
                under, changed = self._of_both(statement, scope, under, depth)
                scope = _with_unknown(changed, scope)
            else:
                for inner in _blocks_in(statement):
                    self._of_block(inner, scope, under, depth)
                scope = _with_unknown(_names_in(*sum(_blocks_in(statement), [])), scope)
            assigned = dict(_assigned(statement, scope))
            scope = NamesAt(assigned, scope) if assigned else scope

    def _of_both(
        self, statement: ast.If, scope: NamesAt, under: tuple[Needed, ...], depth: int
    ) -> tuple[tuple[Needed, ...], set[str]]:
        """Looks through the body and the `else`. Returns the conditions of all that follows, and the names that either
        changes."""
        self._both_ways(statement.test, scope, under)
        ways = [(*under, *_conditions(statement.test, scope, holds)) for holds in (True, False)]
        changed: set[str] = set()
        for side, way, other in zip((statement.body, statement.orelse), ways, reversed(ways)):
            self._of_block(side, scope, way, depth)
            if side and isinstance(side[-1], ast.Return | ast.Raise):
                under = other
            else:
                changed |= _names_in(*side)
        return under, changed

    def _of_expression(self, node: ast.expr, scope: NamesAt, under: tuple[Needed, ...], depth: int) -> None:
        """Looks through an expression; in parts that are evaluated under conditions of their own, under these, too."""
        left: list[tuple[ast.AST, tuple[Needed, ...]]] = [(node, under)]
        while left:
            one, own = left.pop()
            self._nodes += 1
            if self._is_enough:
                return
            if isinstance(one, ast.Compare | ast.BoolOp):
                self._both_ways(one, scope, own)
            elif isinstance(one, ast.IfExp):
                self._both_ways(one.test, scope, own)
            elif isinstance(one, ast.Call):
                self._of_call(one, scope, own, depth)
            left += _parts(one, scope, own)

    def _of_call(self, call: ast.Call, scope: NamesAt, under: tuple[Needed, ...], depth: int) -> None:
        launched = call.func.value if isinstance(call.func, ast.Subscript) else call.func
        name = launched.attr if isinstance(launched, ast.Attribute) else getattr(launched, "id", "")
        if name in CHOOSE and len(call.args) == 2:
            self._both_ways(ast.Compare(call.args[0], [ast.Lt()], [call.args[1]]), scope, under)
        if name in OF_TWO or is_of_a_number(call):
            self._both_ways(call, scope, under)
        function = self._functions.get(name)
        if function is not None and depth < MOST_CALLS and not self._is_enough:
            self._nodes += len(_parameters(function))  # each gets a binding, in each call
            self._of_function(function, _passed(function, call, scope), under, depth + 1)

    def _both_ways(self, node: ast.expr, scope: NamesAt, under: tuple[Needed, ...]) -> None:
        for holds in (True, False):
            conditions = (*under, *_conditions(node, scope, holds))
            if len(conditions) <= MOST_CONDITIONS:
                self._found.append(Branch(conditions, self._budget))


def _conditions(node: ast.expr, scope: NamesAt, holds: bool) -> list[Needed]:
    """Returns the conditions that have to hold for an expression to be true, or false: several for `a and b`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _conditions(node.operand, scope, not holds)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) == holds:
        return [condition for part in node.values for condition in _conditions(part, scope, holds)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd if holds else ast.BitOr):
        return [condition for part in (node.left, node.right) for condition in _conditions(part, scope, holds)]
    return [Needed(node, scope, holds)]


def _parts(node: ast.AST, scope: NamesAt, under: tuple[Needed, ...]) -> Iterator[tuple[ast.AST, tuple[Needed, ...]]]:
    """Yields the parts of an expression, each with the conditions under which it is evaluated: of `a and b`, b where a
    holds."""
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            yield part, under
            if len(under) < MOST_CONDITIONS:
                under = (*under, *_conditions(part, scope, isinstance(node.op, ast.And)))
    elif isinstance(node, ast.IfExp):
        yield node.test, under
        yield node.body, (*under, *_conditions(node.test, scope, True))
        yield node.orelse, (*under, *_conditions(node.test, scope, False))
    else:
        yield from ((part, under) for part in ast.iter_child_nodes(node))


def _without_match(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements, each `match` as the `if`, `elif` and `else` that mean the same."""
    for statement in block:
        if not isinstance(statement, ast.Match):
            yield statement
            continue
        rest: list[ast.stmt] = []
        for case in reversed(statement.cases):
            tests = [one for one in (_asked(statement.subject, case.pattern), case.guard) if one is not None]
            test = ast.BoolOp(ast.And(), tests) if len(tests) > 1 else tests[0] if tests else None
            rest = list(case.body) if test is None else [ast.If(test, case.body, rest)]
        yield from rest


def _asked(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    """Returns what a pattern asks of the subject; None where it asks nothing. What is not read has no value."""
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(subject, [ast.Eq()], [pattern.value])
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])
    if isinstance(pattern, ast.MatchAs):
        return _asked(subject, pattern.pattern) if pattern.pattern else None
    several = getattr(pattern, "patterns", [])
    if isinstance(pattern, ast.MatchOr):
        asked = [_asked(subject, one) or ast.Constant(True) for one in several]
        return ast.BoolOp(ast.Or(), asked)
    parts = subject.elts if isinstance(subject, ast.Tuple) and len(subject.elts) == len(several) else []
    found = [one for part, own in zip(parts, several) if (one := _asked(part, own)) is not None]
    return ast.BoolOp(ast.And(), [*found, ast.Constant(True)]) if parts else ast.Name("_")


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yields the expressions of a statement that are not those of a statement within it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _blocks_in(statement: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    return [*blocks, *(handler.body for handler in getattr(statement, "handlers", []))]


# ---- names -----------------------------------------------------------------------------------------------------------


def _parameters(function: Function) -> list[str]:
    return [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]


def _argument(name: str) -> Binding:
    return lambda reading: reading.facts.arguments.get(name, UNKNOWN)


def _expression(node: ast.expr, scope: NamesAt) -> Binding:
    return lambda reading: reading.value(node, scope)


def _constant_of(name: str, node: ast.expr, scope: NamesAt) -> Binding:
    """Returns the binding of a module's name; a call may replace its number."""
    return lambda reading: reading.facts.constants.get(name) or reading.value(node, scope)


def _item(of: Binding, place: int) -> Binding:
    def read(reading: Reading) -> Any:
        several = reading.named(of)
        return several[place] if type(several) is tuple and place < len(several) else UNKNOWN

    return read


def _passed(function: Function, call: ast.Call, scope: NamesAt) -> dict[str, Binding]:
    """Returns what a function's parameters stand for in a call: its arguments and, for the others, the defaults."""
    names, defaults = _parameters(function), function.args.defaults
    values = {own: _expression(node, scope) for own, node in zip(reversed(names), reversed(defaults), strict=False)}

    def every(reading: Reading) -> tuple[Any, ...]:
        return tuple(reading.items(call.args, scope)[0])

    values |= {own: _or_else(_item(every, place), values.get(own)) for place, own in enumerate(names)}
    return values | {keyword.arg: _expression(keyword.value, scope) for keyword in call.keywords if keyword.arg}


def _or_else(binding: Binding, other: Binding | None) -> Binding:
    def read(reading: Reading) -> Any:
        value = binding(reading)
        return other(reading) if value is UNKNOWN and other is not None else value

    return read


def _unknown(reading: Reading) -> Any:
    return UNKNOWN


def _with_unknown(names: set[str], scope: NamesAt) -> NamesAt:
    return NamesAt(dict.fromkeys(names, _unknown), scope) if names else scope


def _names_in(*statements: ast.stmt) -> set[str]:
    """Returns the names that statements, and all within them, assign."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _assigned(statement: ast.stmt, scope: NamesAt, replaceable: bool = False) -> Iterator[tuple[str, Binding]]:
    """Yields the names that a single statement assigns, with what they stand for after it.

    replaceable: whether a call may replace their numbers.
    """
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from _imported(statement)
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        if isinstance(target, ast.Name) and value is not None:
            yield target.id, _constant_of(target.id, value, scope) if replaceable else _expression(value, scope)
        elif isinstance(target, ast.Name):
            yield target.id, _unknown
        elif isinstance(target, ast.Tuple):
            yield from _unpacked(target, value, scope, replaceable)


def _imported(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Binding]]:
    """Yields the names that an import gives to the module operator, or to its functions."""
    for one in statement.names:
        of_module = isinstance(statement, ast.ImportFrom) and statement.module == "operator"
        value = BY_NAME.get(one.name, UNKNOWN) if of_module else OPERATOR if one.name == "operator" else UNKNOWN
        if value is not UNKNOWN:
            yield one.asname or one.name, partial(_same, value)


def _same(value: Any, reading: Reading) -> Any:
    return value


def _unpacked(
    target: ast.Tuple, value: ast.expr | None, scope: NamesAt, replaceable: bool
) -> Iterator[tuple[str, Binding]]:
    whole = _expression(value or target, scope)
    for place, element in enumerate(target.elts):
        if not isinstance(element, ast.Name):
            continue
        if value is None:
            yield element.id, _unknown
        elif isinstance(value, ast.GeneratorExp | ast.ListComp):  # made alike: what its loop counts is unknown
            yield element.id, _expression(value.elt, scope)
        elif replaceable and isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            yield element.id, _constant_of(element.id, value.elts[place], scope)
        else:
            yield element.id, _item(whole, place)
