"""The branches of a file: parts of its kernels and its entry that only some calls come to.

Each has conditions, which are read for a call whose sizes and strides are known. A condition whose value is not known,
such as a condition of loaded values, may hold in any call.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.numerics.call_facts import CallFacts
from grader.submission.expression_values import UNKNOWN, Binding, Budget, NamesAt, Reading, is_number

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
            for condition in self.conditions:
                value = reading.value(condition.node, condition.scope)
                if is_number(value):
                    count = count + (np.asarray(value, bool) != condition.holds)
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
        for statement in block:
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
        for inner in ast.walk(node):
            self._nodes += 1
            if self._is_enough:
                return
            if isinstance(inner, ast.Compare | ast.BoolOp):
                self._both_ways(inner, scope, under)
            elif isinstance(inner, ast.IfExp):
                self._both_ways(inner.test, scope, under)
            elif isinstance(inner, ast.Call):
                self._of_call(inner, scope, under, depth)

    def _of_call(self, call: ast.Call, scope: NamesAt, under: tuple[Needed, ...], depth: int) -> None:
        launched = call.func.value if isinstance(call.func, ast.Subscript) else call.func
        name = launched.attr if isinstance(launched, ast.Attribute) else getattr(launched, "id", "")
        if name in CHOOSE and len(call.args) == 2:
            self._both_ways(ast.Compare(call.args[0], [ast.Lt()], [call.args[1]]), scope, under)
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
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        if isinstance(target, ast.Name) and value is not None:
            yield target.id, _constant_of(target.id, value, scope) if replaceable else _expression(value, scope)
        elif isinstance(target, ast.Name):
            yield target.id, _unknown
        elif isinstance(target, ast.Tuple):
            yield from _unpacked(target, value, scope, replaceable)


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
