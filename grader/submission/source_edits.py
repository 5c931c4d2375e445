"""Edits of a kernel as the file writes it, for mistakes that leave no trace in what the compiler makes of it.

Most mistakes stand in the compiler's text, where an edit costs least. Not so those after which something else is left
out, as nothing uses it; a number in the place of a tile, after which all that follows has another shape; or a sign
that changes which part of an expression is computed first. Only places that look odd are changed: each edit has to be
compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grader.submission.text import kernels_of, launches_of

MOST_EDITS = 20  # of a file
LAST = 1 << 30  # no line of a file comes after it
REDUCTIONS = ("sum", "max", "min")
SIGNS = ("+", "-", "*", "/", "//", "%")
PRODUCTS = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)


@dataclass(frozen=True)
class SourceEdit:
    """`old` in this line and column (of bytes, as in syntax trees) becomes `new`. `kind`: as of an edit of a text."""

    line: int
    column: int
    old: str
    new: str
    kind: str = "value"

    @property
    def words(self) -> str:
        return f"`{self.new.strip()}` in the place of `{self.old.strip()}`"

    def edited(self, source: bytes) -> bytes:
        lines = source.split(b"\n")
        line, old = lines[self.line - 1], self.old.encode()
        lines[self.line - 1] = line[: self.column] + self.new.encode() + line[self.column + len(old) :]
        return b"\n".join(lines)


def source_edits(tree: ast.Module, source: bytes) -> list[SourceEdit]:
    """Returns the edits of a file's kernels that are worth compiling, the likeliest first."""
    lines, launched = source.split(b"\n"), {one.kernel for one in launches_of(tree)}
    kernels = [_Kernel(kernel, lines, kernel.name in launched) for kernel in kernels_of(tree)]
    kinds: tuple[Callable[[_Kernel], Iterator[SourceEdit]], ...]
    kinds = (
        _Kernel.unused, _Kernel.strides, _Kernel.numbers_for_tiles, _Kernel.limits, _Kernel.factors,
        _Kernel.numbers_for_values, _Kernel.repeated_strides,
    )  # fmt: skip
    found = [edit for edits in kinds for kernel in kernels for edit in edits(kernel)]
    return list(dict.fromkeys(found))[:MOST_EDITS]


class _Kernel:
    """A kernel, or a function that kernels call. `is_launched`: its parameters are pointers and numbers."""

    def __init__(self, function: ast.FunctionDef, lines: list[bytes], is_launched: bool) -> None:
        self.lines = lines
        self.nodes = [node for statement in function.body for node in ast.walk(statement)]
        self.parents = {id(child): node for node in self.nodes for child in ast.iter_child_nodes(node)}
        names = [node for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        self.used = sorted(names, key=lambda one: (one.lineno, one.col_offset))
        self.parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        self.ranks: dict[str, int] = dict.fromkeys(self.parameters, 0) if is_launched else {}  # axes of what is known
        self.made: dict[str, list[ast.stmt]] = {name: [] for name in self.parameters}  # statements that make variables
        self.changed = [node for node in self.nodes if isinstance(node, ast.AugAssign)]
        for node in sorted(self.nodes, key=lambda one: getattr(one, "lineno", 0)):
            if isinstance(node, ast.Assign | ast.For):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                value = node.value if isinstance(node, ast.Assign) else ast.Constant(0)  # a number of the range
                targets, values = getattr(target, "elts", [target]), getattr(value, "elts", [value])
                for at, name in enumerate(targets):
                    if isinstance(name, ast.Name):
                        rank = self._rank(values[at]) if len(values) == len(targets) else None
                        self.made.setdefault(name.id, []).append(node)
                        if rank is not None:
                            self.ranks.setdefault(name.id, rank)

    def _rank(self, node: ast.AST) -> int | None:
        """Returns how many axes a value has; None where the text does not tell."""
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        if isinstance(node, ast.Constant):
            return 0
        if isinstance(node, ast.Name):
            return self.ranks.get(node.id, 0 if node.id.isupper() else None)
        if isinstance(node, ast.Subscript):
            return len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else None
        if isinstance(node, ast.Call):
            ranks = [self._rank(one) for one in node.args]
            if name in ("zeros", "full") and node.args:
                return len(getattr(node.args[0], "elts", [None]))
            if name in REDUCTIONS and ranks:
                has_axis = len(node.args) > 1 or any(one.arg == "axis" for one in node.keywords)
                return 0 if not has_axis else max(ranks[0] - 1, 0) if ranks[0] is not None else None
            if name == "to" and isinstance(node.func, ast.Attribute):
                return self._rank(node.func.value)
            known = {"arange": 1, "dot": 2, "program_id": 0, "num_programs": 0}
            if name in known or not name:
                return known.get(name, 0 if getattr(node.func, "id", "") in ("min", "max") else None)
        parts = node.args if isinstance(node, ast.Call) else [
            one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)
        ]  # fmt: skip
        ranks = [self._rank(one) for one in parts]
        known_ranks = [one for one in ranks if one is not None]
        return max(known_ranks) if len(known_ranks) == len(ranks) > 0 else None

    # ---- odd places

    def numbers_for_tiles(self) -> Iterator[SourceEdit]:
        """Yields tiles in the place of numbers that have rows and columns, or are a factor of a stride beside another;
        and axes of reductions without."""
        for node in self.nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and self._is_number(node.value):
                yield from self._instead(node.value, self._tiles(node.lineno))
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                if self._is_stride(node.left) and self._is_stride(node.right):
                    for one in (node.left, node.right):
                        yield from self._instead(one, self._variables(node.lineno))
            elif isinstance(node, ast.Call):
                yield from self._without_axis(node)

    def _without_axis(self, node: ast.Call) -> Iterator[SourceEdit]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_whole = len(node.args) == 1 and not any(one.arg == "axis" for one in node.keywords)
        if name in REDUCTIONS and is_whole and self._rank(node.args[0]) == 2 and (old := self._text(node.args[0])):
            for axis in (1, 0):
                yield SourceEdit(node.lineno, node.args[0].col_offset, old, f"{old}, {axis}", "axis")

    def numbers_for_values(self) -> Iterator[SourceEdit]:
        """Yields variables in the place of sizes that are computed with beside values of a tile."""
        for node in (one for one in self.nodes if isinstance(one, ast.BinOp)):
            sides = [(node.left, node.right), (node.right, node.left)]
            for one, other in sides[: 1 if isinstance(node.op, ast.Div) else 2]:
                is_size = isinstance(one, ast.Name) and one.id.isupper() and one.id in self.parameters
                if is_size and self._is_computed(other) and not (isinstance(node.op, ast.Mult) and _is_part(other)):
                    yield from self._instead(one, [*self._tiles(node.lineno), *self._variables(node.lineno)])

    def strides(self) -> Iterator[SourceEdit]:
        """Yields a stride that nothing uses in the place of another, and what a stride may stand for that is no factor
        of a product."""
        used = {one.id for one in self.used}
        for name in (one for one in self.parameters if "stride" in one and one not in used):
            yield from self._in_places(name, [one for one in self.used if self._is_stride(one)])
        for node in (one for one in self.nodes if isinstance(one, ast.BinOp)):
            if not isinstance(node.op, ast.Mult) and (self._is_stride(node.left) or self._is_stride(node.right)):
                yield from self._with_sign(node, "*")
                for one in (node.left, node.right):
                    if self._is_stride(one):
                        yield from self._instead(one, [it for it in self.parameters if it.isupper()])

    def repeated_strides(self) -> Iterator[SourceEdit]:
        """Yields sizes in the place of a stride that is used twice: it is used once, as a rule."""
        sizes = [one for one in self.parameters if one.isupper() and not one.startswith("BLOCK")]
        for used in (one for one in self.used if self._is_stride(one)):
            if sum(one.id == used.id for one in self.used) == 2:
                yield from self._instead(used, sizes)

    def limits(self) -> Iterator[SourceEdit]:
        """Yields sizes in the place of a parameter that is no size and is compared with."""
        for node in (one for one in self.nodes if isinstance(one, ast.Compare)):
            for one in (node.left, *node.comparators):
                if isinstance(one, ast.Name) and one.id in self.parameters and one.id.islower():
                    yield from self._instead(one, [it for it in self.parameters if it.isupper()])

    def factors(self) -> Iterator[SourceEdit]:
        for node in (one for one in self.nodes if isinstance(one, ast.BinOp)):
            yield from self._of_products(node)

    def _of_products(self, node: ast.BinOp) -> Iterator[SourceEdit]:
        """Yields a sum in the place of the first of several factors: the sign that stands there binds more. A place
        among tiles, as in `number // columns % rows`, is no such product."""
        parent = self.parents.get(id(node))
        if isinstance(parent, ast.BinOp) and parent.left is node and isinstance(node.left, ast.Call | ast.Name):
            are_products = isinstance(node.op, PRODUCTS) and isinstance(parent.op, PRODUCTS)
            if are_products and any(isinstance(one, ast.Mult) for one in (node.op, parent.op)):
                yield from self._with_sign(node, "+-")

    def _with_sign(self, node: ast.BinOp, signs: str) -> Iterator[SourceEdit]:
        if node.left.end_lineno == node.right.lineno:
            start = node.left.end_col_offset or 0
            old = self.lines[node.right.lineno - 1][start : node.right.col_offset].decode(errors="replace")
            for sign in signs if old.strip() in SIGNS else ():
                yield SourceEdit(node.right.lineno, start, old, old.replace(old.strip(), sign), "operation")

    def _is_number(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and self.ranks.get(node.id) == 0

    def _is_stride(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self.parameters and "stride" in node.id

    def _is_computed(self, node: ast.AST) -> bool:
        """Returns whether a value comes from a function of Triton, or has another axis."""
        inner = node.value if isinstance(node, ast.Subscript) else node
        named = getattr(inner.func, "attr", "") if isinstance(inner, ast.Call) else ""
        return _is_part(node) or bool(named) and named not in ("arange", "program_id", "num_programs", "cdiv")

    def _variables(self, line: int) -> list[str]:
        return [name for name, made in self.made.items() if made and made[0].lineno < line]

    def _tiles(self, line: int) -> list[str]:
        return [name for name in self._variables(line) if self.ranks.get(name, 0) > 0]

    # ---- what nothing uses

    def unused(self) -> Iterator[SourceEdit]:
        """Yields each variable with a value that nothing uses, in the places of others that could have been it."""
        for name, made in self.made.items():
            for at, statement in enumerate(made if not name.startswith("_") else ()):
                last = made[at + 1] if at + 1 < len(made) else None
                if isinstance(statement, ast.Assign) and not self._is_used(name, statement, last):
                    first, end = statement.end_lineno or 0, LAST
                    if last is not None:  # it is used after a loop, or should be in what takes its place
                        first, end = last.lineno - 1, last.end_lineno or 0
                    yield from self._in_places(name, [one for one in self.used if first < one.lineno <= end])

    def _in_places(self, name: str, places: list[ast.Name]) -> Iterator[SourceEdit]:
        """A name that is written by mistake is used elsewhere too."""
        for used in places:
            if used.id in self.made and sum(one.id == used.id for one in self.used) > 1:
                yield from self._instead(used, [name])

    def _is_used(self, name: str, made: ast.stmt, following: ast.stmt | None) -> bool:
        """Returns whether a value that a statement gives a variable may be used; `following`: gives the next one."""
        if following is not None and any(
            isinstance(node, ast.If) and self._is_in(following, node) and not self._is_in(made, node)
            for node in self.nodes
        ):
            following = None  # it may be left out
        first, last = made.end_lineno or 0, (following.end_lineno or 0) if following is not None else LAST
        loops = [node for node in self.nodes if isinstance(node, ast.For | ast.While) and self._is_in(made, node)]
        again = min((loop.lineno for loop in loops), default=LAST)  # what uses it may stand before it there
        lines = [one.lineno for one in self.used if one.id == name]
        is_read = any(first < line <= last or line >= again for line in lines)
        return is_read or self._is_changed(name, min(first, again), last)

    def _is_changed(self, name: str, first: int, last: int) -> bool:
        changed = (one for one in self.changed if isinstance(one.target, ast.Name) and one.target.id == name)
        return any(first < one.lineno <= last for one in changed)

    def _is_in(self, node: ast.stmt, outer: ast.stmt) -> bool:
        return outer.lineno <= node.lineno and (node.end_lineno or 0) <= (outer.end_lineno or 0)

    # ---- edits

    def _instead(self, node: ast.AST, names: list[str]) -> Iterator[SourceEdit]:
        if isinstance(node, ast.Name):
            for name in names:
                if name != node.id:
                    yield SourceEdit(node.lineno, node.col_offset, node.id, name)

    def _text(self, node: ast.expr) -> str:
        if node.end_lineno != node.lineno:
            return ""
        return self.lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode(errors="replace")


def _is_part(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript)
