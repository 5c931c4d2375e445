"""Wrong kernels for nothing, to measure how well failures are explained: mistakes of the list in kernels of other
designs, and edits that nobody has thought of."""

from __future__ import annotations

import ast
import contextlib
import difflib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.author.operators import Solution
from grader.course.changed_text import BadChange, changed
from grader.course.folder import Folder
from grader.course.mistakes import causes_of, tables

EDITS = 16  # of an exercise; about three in four give a wrong kernel that compiles
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
NUMBERS = ("0", "1", "2")
FUNCTIONS = (
    ("sum", "max", "min"), ("exp", "exp2", "log", "log2"), ("maximum", "minimum"), ("sqrt", "rsqrt"),
    ("program_id", "num_programs"),
)  # fmt: skip


@dataclass(frozen=True)
class WrongKernel:
    """A submission with a mistake. `lines`: of its statements that hold the mistake. `expected`: the ids of causes that
    may name it; "" if nobody has foreseen it."""

    name: str
    exercise: Path
    text: str
    lines: tuple[int, ...]
    expected: str = ""


def transplants(folder: Folder) -> Iterator[WrongKernel]:
    """Yields each mistake with a cause of the exercise's own, made in each accepted kernel where that change
    applies."""
    causes = causes_of(folder)
    mutants = {name: one for name, one in tables(folder).items() if not causes.isdisjoint(one["finding"].split())}
    for path in _accepted(folder):
        text = path.read_text(encoding="utf-8")
        for name, mutant in mutants.items():
            with contextlib.suppress(BadChange, SyntaxError):  # some text may stand at another depth
                wrong = changed(text, mutant["changes"])
                yield _wrong(f"{path.stem}: {name}", folder, text, wrong, mutant["finding"])


def unforeseen(folder: Folder, seed: int) -> Iterator[WrongKernel]:
    """Yields random edits of the solutions and the accepted kernels, each of another place: another name, comparison,
    operator, number or function, or a keyword dropped. Not each is wrong, and not each compiles."""
    numbers = random.Random(f"{seed} {folder.id}")
    paths = [*folder.solution_files, *_accepted(folder)]
    places = [(path, place) for path in paths for place in _places(path.read_text(encoding="utf-8"))]
    for path, (start, end, choices) in numbers.sample(places, min(EDITS, len(places))):
        text, new = path.read_text(encoding="utf-8"), numbers.choice(choices)
        name = f"{path.stem}: {text[start:end]!r} -> {new!r} at {start}"
        yield _wrong(name, folder, text, text[:start] + new + text[end:])


def _accepted(folder: Folder) -> list[Path]:
    return sorted(folder.accepted_folder.glob("*.py"))


def _wrong(name: str, folder: Folder, old: str, new: str, expected: str = "") -> WrongKernel:
    compared = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    blocks = [(j + 1, max(k, j + 1)) for tag, _, _, j, k in compared.get_opcodes() if tag != "equal"]
    statements = [
        (one.lineno, one.end_lineno or one.lineno)
        for one in ast.walk(ast.parse(new)) if isinstance(one, ast.stmt) and not hasattr(one, "body")
    ]  # fmt: skip
    blocks += [one for one in statements for first, last in blocks if one[0] <= last and first <= one[1]]
    lines = {line for first, last in blocks for line in range(first, last + 1)}
    return WrongKernel(name, folder.path, new, tuple(sorted(lines)), expected)


Place = tuple[int, int, list[str]]  # of a text: where it begins, where it ends, and what may stand there instead


def _places(text: str) -> list[Place]:
    """Returns the places of a file's functions that an edit may change."""
    read, found = Solution(text), list[Place]()
    for function in (*read.kernels, *read.hosts):
        names = _variables(function)
        for node in (one for statement in function.body for one in ast.walk(statement)):
            found += _edits_of(node, text, names, read.span)
    return [(start, end, choices) for start, end, choices in found if choices]


def _variables(function: ast.FunctionDef) -> list[str]:
    assigned = {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return sorted(assigned | {one.arg for one in function.args.args})


def _edits_of(node: ast.AST, text: str, names: list[str], span) -> Iterator[Place]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        yield *span(node), [name for name in names if name != node.id]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        yield from _between(node.left, node.comparators[0], text, COMPARISONS[type(node.ops[0])], COMPARISONS, span)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield from _between(node.left, node.right, text, OPERATORS[type(node.op)], OPERATORS, span)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield *span(node), [number for number in NUMBERS if float(number) != node.value]
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        family = next((one for one in FUNCTIONS if node.attr in one), ())
        yield *span(node), [f"{node.value.id}.{name}" for name in family if name != node.attr]
    elif isinstance(node, ast.Call):
        for keyword in node.keywords:
            start, end = span(keyword)
            yield max(text.rfind(",", 0, start), 0), end, [""]


def _between(left: ast.expr, right: ast.expr, text: str, symbol: str, family: dict, span) -> Iterator[Place]:
    """Yields the place of an operator between its operands, with the other operators of its family."""
    start = text.find(symbol, span(left)[1], span(right)[0])
    if start >= 0:
        yield start, start + len(symbol), [other for other in family.values() if other != symbol]
