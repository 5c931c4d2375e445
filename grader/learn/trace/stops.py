"""The steps of a traced program as stops of a debugger: each stop is a statement of the file with its values."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grader.submission.nodes import covers, last_line
from grader.wire.traced_program import TracedStep

ACCESSES = ("load", "store", "atomic")
VALUES = (*ACCESSES, "value", "constant")
TOLD_ALWAYS = (*ACCESSES, "parameter", "carried", "printed")
SHOWN_OPERATIONS = (  # also where their value is only a step on the way to a variable's
    "tl.sum", "tl.max", "tl.min", "tl.dot", "tl.reduce", "tl.dot_scaled", "tl.cumsum", "tl.associative_scan",
    "tl.xor_sum", "tl.all", "tl.any", "tl.prod", "tl.cumprod",
)  # fmt: skip
MOST_CONDITION = 60  # characters
BLOCKS = ("body", "orelse", "handlers", "finalbody")


@dataclass(frozen=True)
class Statement:
    """A statement, without its body. `arms`: the first lines of the bodies that it stands in, the outermost first."""

    line: int
    end: int
    arms: tuple[int, ...] = ()
    target: str = ""  # the only variable that it assigns to
    several: bool = False  # it assigns to several variables
    index: str = ""  # the variable of a for loop
    condition: str = ""  # of an if or a while, as it is written
    rounds_up: bool = False  # it calls tl.cdiv and divides in no other way


@dataclass(frozen=True)
class Iteration:
    line: int
    number: int
    of: int


@dataclass
class Stop:
    statement: Statement
    calls: tuple[int, ...] = ()
    path: tuple[Iteration, ...] = ()  # iterations of the loops around it
    steps: list[TracedStep] = field(default_factory=list)
    note: str = ""
    follows: bool = False  # it begins an iteration, and the iteration before was not left out

    @property
    def line(self) -> int:
        return self.statement.line

    @property
    def told(self) -> list[tuple[str, TracedStep]]:
        """The steps to show, each with the name of its variable or of its operation."""
        last = {self._name(step): step for step in self.steps if step.kind in VALUES}
        unnamed = last.pop("", None)
        steps: list[tuple[str, TracedStep]] = []
        for step in self.steps:
            name = self._name(step)
            if step.kind == "parameter" and any(name == other for other, _ in steps):
                continue  # sizes and strides of a descriptor come after it
            if step.kind in TOLD_ALWAYS or last.get(name) is step or step.operation in SHOWN_OPERATIONS:
                final = step.kind not in VALUES or last.get(name) is step
                steps.append((name if final and name else step.operation, step))
            elif not name and self.statement.several and step.operation:
                steps.append((step.operation, step))
        if unnamed is not None and self.statement.condition and unnamed.dtype == "bool":
            steps.append((self.statement.condition, unnamed))
        elif not steps and unnamed is not None:
            steps = [(unnamed.operation, unnamed)]
        return [(name, step) for name, step in steps if name or step.dtype != "pointer"]

    def _name(self, step: TracedStep) -> str:
        if step.variable or step.kind == "store":
            return step.variable
        return self.statement.target if step is self.steps[-1] else ""

    def is_at(self, line: int) -> bool:
        """Returns True if the statement of this stop covers a line of the file."""
        return self.line <= line <= self.statement.end

    def is_stale_at(self, other: Stop) -> bool:
        """Returns True if this stop belongs to another iteration of a loop than the stop `other`."""
        return any(own != now for own, now in zip(self.path, other.path))


class Statements:
    """The statements of the functions of a file, by line."""

    def __init__(self, tree: ast.AST) -> None:
        self._by_line: dict[int, Statement] = {}
        self.functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for function in self.functions:
            self._add(function, ())

    def at(self, line: int) -> Statement:
        return self._by_line.get(line) or Statement(line, line)

    def lines_of(self, lines: set[int], kernel: str) -> list[int]:
        """Returns the lines of the kernel, and of all functions that these lines stand in."""
        shown = (
            node for node in self.functions
            if node.name == kernel or any(covers(node, line) for line in lines)
        )  # fmt: skip
        return sorted({line for node in shown for line in range(node.lineno, last_line(node) + 1)})

    def _add(self, node: ast.stmt, arms: tuple[int, ...]) -> None:
        bodies = [body for name in BLOCKS if (body := getattr(node, name, None))]
        end = max([node.lineno, *_ends(node, bodies)]) if bodies else last_line(node)
        statement = Statement(node.lineno, end, arms, **_target(node), rounds_up=_rounds_up(node, bodies))
        for line in range(node.lineno, end + 1):
            self._by_line.setdefault(line, statement)
        for body in bodies:
            for inner in body:
                if isinstance(inner, ast.stmt):
                    self._add(inner, (*arms, body[0].lineno))


def _ends(node: ast.stmt, bodies: list[list[ast.stmt]]) -> list[int]:
    """Returns the last line of each part of a compound statement's head."""
    inside = {inner for body in bodies for inner in body}
    heads = (part for part in ast.iter_child_nodes(node) if part not in inside)
    ends = (getattr(part, "end_lineno", None) for head in heads for part in ast.walk(head))
    return [end for end in ends if end]


def _target(node: ast.stmt) -> dict:
    """Returns the fields of a Statement that say what it assigns to, or which condition it tests."""
    if isinstance(node, ast.If | ast.While):
        return {"condition": ast.unparse(node.test)[:MOST_CONDITION]}
    if isinstance(node, ast.For):
        return {"index": node.target.id if isinstance(node.target, ast.Name) else ""}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if len(targets) == 1 and isinstance(targets[0], ast.Name):
        return {"target": targets[0].id}
    return {"several": any(isinstance(target, ast.Tuple | ast.List) for target in targets)}


def _rounds_up(node: ast.stmt, bodies: list[list[ast.stmt]]) -> bool:
    """Returns True if the statement, or a compound statement's head, calls tl.cdiv and holds no //."""
    inside = {inner for body in bodies for inner in body}
    parts = [part for head in ast.iter_child_nodes(node) if head not in inside for part in ast.walk(head)]
    divides = any(isinstance(part, ast.FloorDiv) for part in parts)
    return not divides and any(getattr(part, "attr", "") == "cdiv" for part in parts)


def _as_written(stop: Stop) -> list[TracedStep]:
    """Returns the steps of a stop, with a single step for the several that the compiler makes of tl.cdiv."""
    if not stop.statement.rounds_up:
        return stop.steps
    written = []
    for step, following in zip(stop.steps, [*stop.steps[1:], None]):
        if step.operation == "//":
            written.append(replace(step, operation="tl.cdiv"))
        elif step.operation != "+" or step.variable or following is None or following.operation != "//":
            written.append(step)
    return written


def stops_of(steps: list[TracedStep], tree: ast.AST) -> list[Stop]:
    return _Reader(Statements(tree)).read(steps)


def first_of(stops: Sequence[Stop], line: int) -> int:
    """Returns the number of the first stop at this line; 0 if there is none."""
    return next((n for n, stop in enumerate(stops) if line and stop.is_at(line)), 0)


def _iteration_text(step: TracedStep) -> str:
    if step.operation == "while" and step.iteration == step.iterations:
        return f"after {step.iteration - 1} iterations"
    return f"iteration {step.iteration} of {step.iterations - (step.operation == 'while')}"


class _Reader:
    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self.stops: list[Stop] = []
        self.path: tuple[Iteration, ...] = ()
        self.constants: dict[Statement, TracedStep] = {}
        self.visits: Counter = Counter()
        self.gap = False  # iterations have just been left out

    def read(self, steps: list[TracedStep]) -> list[Stop]:
        self.constants = self._only_constant(steps)
        for step in steps:
            if step.kind == "iteration":
                iteration = Iteration(step.line, step.iteration, step.iterations)
                self.path = self.path[: step.depth - 1]
                self._constants_before(self.statements.at(step.line), tuple(step.calls))
                self.path, before = (*self.path, iteration), self.gap
                self._stop(step, _iteration_text(step))
                self.stops[-1].follows, self.gap = step.iteration > 1 and not before, False
            elif step.kind == "gap":
                self.path, self.gap = self.path[: step.depth - 1], True
                self._stop(step, f"iterations {step.iteration} to {step.iteration + step.iterations - 1} are left out")
            elif step.kind != "constant" and step.line:
                self._add(step)
        for stop in self.stops:
            stop.steps = _as_written(stop)
        return self.stops

    def _only_constant(self, steps: list[TracedStep]) -> dict[Statement, TracedStep]:
        """Returns the statements that the compiler made a constant, which it computes first, each with its step."""
        others = {self.statements.at(step.line) for step in steps if step.kind != "constant"}
        constants = {
            self.statements.at(step.line): step for step in steps if step.kind == "constant" and not step.calls
        }
        return {
            statement: step
            for statement, step in constants.items()
            if statement not in others and statement.target and step.variable == statement.target
        }

    def _add(self, step: TracedStep) -> None:
        statement, calls = self.statements.at(step.line), tuple(step.calls)
        self.path = self.path[: step.depth]
        now = self.stops[-1] if self.stops else None
        if now is None or (now.statement, now.calls, now.path) != (statement, calls, self.path):
            if now is not None:
                self._return(now, statement, calls)
            self._enter_calls(calls)
            self._constants_before(statement, calls)
            self._stop(step)
        if step.kind != "carried" or step.variable:
            self.stops[-1].steps.append(step)

    def _stop(self, step: TracedStep, note: str = "") -> None:
        statement, calls = self.statements.at(step.line), tuple(step.calls)
        if not note:
            self.visits[statement, calls, self.path] += 1
            times = self.visits[statement, calls, self.path]
            note = f"time {times}" if times > 1 else ""
        self.stops.append(Stop(statement, calls, self.path, note=note))

    def _enter_calls(self, calls: tuple[int, ...]) -> None:
        """Adds a stop for each call on the way, unless the last stop is at or inside that call."""
        for depth in range(len(calls)):
            outer, statement = calls[:depth], self.statements.at(calls[depth])
            now = self.stops[-1] if self.stops else None
            inside = now is not None and now.calls[: depth + 1] == calls[: depth + 1]
            if not inside and (now is None or (now.statement, now.calls) != (statement, outer)):
                self._constants_before(statement, outer)
                self.stops.append(Stop(statement, outer, self.path, note="calls"))

    def _return(self, now: Stop, following: Statement, calls: tuple[int, ...]) -> None:
        """Adds a stop for the value that a function returned, if the call's statement assigns it to a variable."""
        if len(now.calls) <= len(calls) or not now.steps:
            return
        outer, statement = now.calls[: len(calls)], self.statements.at(now.calls[len(calls)])
        if outer == calls and statement != following and statement.target:
            result = replace(now.steps[-1], variable=statement.target, kind="value")
            self.stops.append(Stop(statement, outer, self.path, [result], "returned"))

    def _constants_before(self, following: Statement, calls: tuple[int, ...]) -> None:
        """Adds stops for the constants of statements that the program passes on its way to `following`."""
        before = next((stop for stop in reversed(self.stops) if stop.calls == calls), None)
        if calls or before is None or following.line <= before.line:
            return
        arms = {following.arms[:depth] for depth in range(len(following.arms) + 1)} | {before.statement.arms}
        for statement, step in sorted(self.constants.items(), key=lambda item: item[0].line):
            if before.line < statement.line < following.line and statement.arms in arms:
                self.stops.append(Stop(statement, calls, self.path, [step]))
