"""A submission as text: read, decoded and parsed, never imported. Problems become failures here."""

from __future__ import annotations

import ast
import codecs
import io
import re
import stat
import tokenize
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeGuard

from grader.submission.nesting import MOST_LEVELS, line_nested_too_deep
from grader.submission.nodes import (
    all_parameters,
    called_name,
    calls_in,
    covers,
    is_method_call,
    last_line,
    statements_in,
    whole_number,
)  # fmt: skip
from grader.wire.messages import Failure
from grader.wire.printable import one_line

MOST_BYTES = 1 << 20
MOST_NODES = 20_000  # of a file's syntax tree; the largest solution has 2127
MOST_SHOWN = 60  # characters of an expression in a message
LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass
class Submission:
    """The file under judgement. `tree` holds no statement when `failure` says why the file could not be read."""

    path: Path
    source: bytes = b""
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))
    failure: Failure | None = None

    @property
    def lines(self) -> list[str]:
        """The lines as Python counts them: str.splitlines would take a form feed, too, for the end of a line."""
        return LINE_END.split(self.source.decode("utf-8", "replace"))

    def line(self, number: int) -> str:
        """Returns the text of a line, without indentation and fit to be shown; "" if the file has fewer lines."""
        return self.indented(number).strip()

    def indented(self, number: int) -> str:
        """Returns the text of a line with its indentation, fit to be shown; "" if the file has fewer lines."""
        lines = self.lines
        text = lines[number - 1].rstrip().expandtabs(4) if 0 < number <= len(lines) else ""
        return one_line(text)


def read_submission(path: Path) -> Submission:
    """Returns the submission in this file. Never raises: a file that cannot be read is a submission with a failure."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would wait for a writer, a device has no end
            return Submission(path, failure=Failure("no-file"))
        with path.open("rb") as file:
            source = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return Submission(path, failure=Failure("missing"))
    except OSError as error:
        return Submission(path, failure=Failure("unreadable", message=error.strerror or type(error).__name__))
    if len(source) > MOST_BYTES:
        return Submission(path, failure=Failure("too-long", message=str(MOST_BYTES)))
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source[: error.start].count(b"\n") + 1
        return Submission(path, source, failure=Failure("encoding", message=f"byte {error.start}", line=line))
    if failure := _other_encoding(source):
        return Submission(path, source, failure=failure)
    parsed = _parsed(text)
    if isinstance(parsed, Failure):
        return Submission(path, source, failure=parsed)
    if any(True for _ in islice(ast.walk(parsed), MOST_NODES, None)):
        return Submission(path, source, failure=Failure("too-many-nodes", message=str(MOST_NODES)))
    return Submission(path, source, parsed)


def _other_encoding(source: bytes) -> Failure | None:
    """Returns a failure for a file that Python reads in another encoding than UTF-8, as its first lines may say, "#
    coding: latin-1"; None for UTF-8, in which the file is checked.

    Source: https://docs.python.org/3/reference/lexical_analysis.html#encoding-declarations
    """
    lines = io.BytesIO(source).readline
    try:
        name, read = tokenize.detect_encoding(lines)
    except SyntaxError as error:  # an encoding that Python does not know
        return Failure("other-encoding", "SyntaxError", error.msg.rpartition(": ")[2], 1)
    name = codecs.lookup(name).name  # "utf8" is another name for it
    return None if name in ("utf-8", "utf-8-sig") else Failure("other-encoding", message=name, line=max(len(read), 1))


def _parsed(text: str) -> ast.Module | Failure:
    """Returns the syntax tree of a text, or the failure that says why there is none."""
    try:
        with warnings.catch_warnings(action="ignore"):  # Python's of its style, as of "\d", are no part of a verdict
            tree = ast.parse(text)
    except SyntaxError as error:
        return Failure("syntax", "SyntaxError", error.msg, error.lineno or 0)
    except ValueError as error:  # a null byte
        return Failure("syntax", type(error).__name__, str(error)[:200])
    except (RecursionError, MemoryError):  # which the parser raises for what it cannot follow
        return Failure("nested", message=str(MOST_LEVELS))
    if line := line_nested_too_deep(tree):
        return Failure("nested", message=str(MOST_LEVELS), line=line)
    return tree


@dataclass
class KernelFacts:
    """Facts about the kernels of a submission, from its syntax tree; evidence for explanations only."""

    names: list[str]
    axes: set[int]  # axes that tl.program_id is called with
    boolean_lines: list[int]  # lines where `and`, `or` or a chained comparison joins values
    ignores_strides: bool = False  # parameters are called strides, and none of them is used


def kernel_facts(tree: ast.Module) -> KernelFacts:
    text = KernelFacts([], set(), [])
    for node in ast.walk(tree):
        if _is_kernel(node):
            text.names.append(node.name)
            _read_kernel(node, text)
    return text


def _is_kernel(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any("jit" in ast.dump(d) for d in node.decorator_list)


def _read_kernel(kernel: ast.FunctionDef, text: KernelFacts) -> None:
    strides = {name for name in all_parameters(kernel) if "stride" in name}
    used = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
    text.ignores_strides |= bool(strides) and not strides & used
    tests = (node.test for node in ast.walk(kernel) if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)))
    scalar = {id(inner) for test in tests for inner in ast.walk(test)}  # conditions of the control flow are scalars
    for node in ast.walk(kernel):
        if id(node) in scalar:
            continue
        if isinstance(node, ast.BoolOp) or (isinstance(node, ast.Compare) and len(node.ops) > 1):
            text.boolean_lines.append(node.lineno)
        if is_method_call(node, "program_id"):
            text.axes.add(_axis(node) or 0)


def axes_asked_for(tree: ast.Module, kernel: str) -> dict[int, int]:
    """Returns the axes that a kernel asks tl.program_id for, as far as its text tells, each with its first line."""
    found: dict[int, int] = {}
    named = (node for node in ast.walk(tree) if _is_kernel(node) and node.name == kernel)
    for call in calls_in(named):
        if is_method_call(call, "program_id") and (axis := _axis(call)) is not None:
            found.setdefault(axis, call.lineno)
    return found


def _axis(call: ast.Call) -> int | None:
    """Returns the axis that tl.program_id is called with; None where the text does not tell."""
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "axis")]
    return whole_number(given[0]) if given else None


def kernels_of(tree: ast.Module) -> list[ast.FunctionDef]:
    """Returns the functions decorated with jit, kernels and the functions that they call, in the order of the text."""
    return [node for node in ast.walk(tree) if _is_kernel(node)]


@dataclass(frozen=True)
class LaunchText:
    """A launch in the file: a call kernel[grid](...)."""

    kernel: str  # its name, as it stands there
    call: ast.Call


def launches_of(tree: ast.Module) -> list[LaunchText]:
    """Returns the launches of the file: calls kernel[grid](...) where a name stands before the grid."""
    functions = ((call, call.func) for call in calls_in([tree]))
    launched = ((call, function.value) for call, function in functions if isinstance(function, ast.Subscript))
    return [LaunchText(kernel.id, call) for call, kernel in launched if isinstance(kernel, ast.Name)]


def is_in_loop(tree: ast.Module, line: int) -> bool:
    """Returns whether this line lies in the body of a loop of a kernel."""
    loops = (inner for node in ast.walk(tree) if _is_kernel(node) for inner in ast.walk(node))
    return any(isinstance(one, ast.For | ast.While) and one.lineno < line <= last_line(one) for one in loops)


def literals_in_kernels(tree: ast.Module, numbers: Collection[int]) -> list[tuple[int, int]]:
    """Returns (number, line) for each place in kernels where one of these numbers is written."""
    inner = (one for node in ast.walk(tree) if _is_kernel(node) for part in node.body for one in ast.walk(part))
    written = [(whole_number(one), one.lineno) for one in inner if isinstance(one, ast.Constant)]
    return [(number, line) for number, line in written if number is not None and number in numbers]


def access_at(tree: ast.Module, line: int, function: str) -> ast.Call | None:
    """Returns the call of tl.load or tl.store (`function`) that covers `line`; None if there is none."""
    for node in ast.walk(tree):
        if is_method_call(node, function) and covers(node, line):
            return node
    return None


def takes_corner(call: ast.Call) -> bool:
    """Returns whether a load or store is a descriptor's, as in descriptor.load([m, k])."""
    return bool(call.args) and isinstance(call.args[0], (ast.List, ast.Tuple))


@dataclass(frozen=True)
class MadeDescriptor:
    """A descriptor as the file makes it: the tensor or pointer that it describes, and its block; "" where the text does
    not say."""

    line: int
    tensor: str
    block: str


def descriptors_made(tree: ast.Module) -> list[MadeDescriptor]:
    """Returns the descriptors that host functions and kernels make, in the order of the file."""
    made = []
    for node in calls_in([tree]):
        names = _names(node.func)
        of_tensor = names == ("TensorDescriptor", "from_tensor")
        if not of_tensor and names[1] not in ("TensorDescriptor", "make_tensor_descriptor"):
            continue
        given: dict[int | str | None, ast.expr] = {keyword.arg: keyword.value for keyword in node.keywords}
        given |= dict(enumerate(node.args))
        tensor = given.get(0, given.get("tensor", given.get("base")))
        block = given.get(1 if of_tensor else 3, given.get("block_shape"))
        made.append(MadeDescriptor(node.lineno, _short_text(tensor), _short_text(block)))
    return sorted(made, key=lambda one: one.line)


def _names(function: ast.expr) -> tuple[str, str]:
    """Returns the last two parts of a dotted name; "" for a part that is missing."""
    owner = getattr(function, "value", None)
    return getattr(owner, "attr", getattr(owner, "id", "")), getattr(function, "attr", getattr(function, "id", ""))


def _short_text(node: ast.expr | None) -> str:
    """Returns the expression on one line; "" where there is none, or where it is too long to be read."""
    try:
        text = "" if node is None else one_line(" ".join(ast.unparse(node).split()))
    except ValueError:  # a number of 4301 digits
        return ""
    return text if len(text) <= MOST_SHOWN else ""


def code_text(node: ast.expr) -> str:
    """Returns the expression on one line for a sentence: cut where it is long, "this" where Python has no text."""
    try:
        text = " ".join(ast.unparse(node).split())
    except ValueError:  # a number of 4301 digits
        return "this"
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def loaded_in_address(tree: ast.Module, line: int, function: str) -> str:
    """Returns the variable in the address of the tl.load or tl.store at `line` that was loaded itself; "" if none."""
    call = access_at(tree, line, function)
    kernels = [node for node in ast.walk(tree) if _is_kernel(node) and covers(node, line)]
    if call is None or not call.args or not kernels:
        return ""
    loaded = {
        target.id
        for node in ast.walk(kernels[0])
        if isinstance(node, ast.Assign) and _is_load(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    used = (node.id for node in ast.walk(call.args[0]) if isinstance(node, ast.Name))
    return next((name for name in used if name in loaded), "")


def _is_load(value: ast.expr) -> bool:
    """Returns whether a value is tl.load(...), also converted: tl.load(...).to(tl.int64)."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to":
        value = value.func.value
    return is_method_call(value, "load")


def line_of_division(tree: ast.Module, line: int) -> int:
    """Returns the last line up to this one in which a kernel divides with / for a value used here; 0 if there is
    none."""
    kernel = next((node for node in kernels_of(tree) if covers(node, line)), None)
    used: set[str] = set()
    statements = [node for node in ast.walk(kernel) if isinstance(node, ast.stmt)] if kernel is not None else []
    for node in sorted(statements, key=lambda node: node.lineno, reverse=True):
        parts = list(ast.walk(node.iter if isinstance(node, ast.For) else node))
        stored = {one.id for one in parts if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        here = covers(node, line) and not isinstance(node, ast.For | ast.FunctionDef)
        here |= isinstance(node, ast.For) and node.lineno == line
        if node.lineno > line or not here and not stored & used or isinstance(node, ast.FunctionDef):
            continue
        if any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) for one in parts):
            return node.lineno
        used |= {one.id for one in parts if isinstance(one, ast.Name)}
    return 0


def calls_of(tree: ast.Module, function: str) -> list[int]:
    """Returns the lines in which tl's function of this name is called."""
    return [last_line(call.func) for call in calls_in([tree]) if called_name(call) == function]


def builtin_at(tree: ast.Module, line: int, names: Collection[str]) -> str:
    """Returns the first of these built-in functions of Python that a line calls; "" if it calls none."""
    for call in calls_in([tree]):
        if isinstance(call.func, ast.Name) and call.func.id in names and covers(call, line):
            return call.func.id
    return ""


def line_of_subtracted_sum(tree: ast.Module) -> int:
    """Returns the first line of a kernel that subtracts a sum, or a value made of a sum; 0 where none does."""
    for kernel in kernels_of(tree):
        made_of_sums: set[str] = set()
        for node in statements_in(kernel):
            if isinstance(node, ast.Assign) and _holds_sum(node.value, made_of_sums):
                made_of_sums |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _holds_sum(node.right, made_of_sums):
                return node.lineno
    return 0


def _holds_sum(expression: ast.expr, made_of_sums: set[str]) -> bool:
    """Returns whether the expression adds up lanes, or names a value made of a sum of lanes."""
    nodes = list(ast.walk(expression))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return bool(names & made_of_sums) or any(is_method_call(node, "sum") for node in nodes)


def first_load_with_other(tree: ast.Module) -> int:
    """Returns the line of the first tl.load that names `other`; 0 if there is none."""
    loads = [node for node in ast.walk(tree) if is_method_call(node, "load")]
    lines = [one.lineno for one in loads if len(one.args) > 2 or any(word.arg == "other" for word in one.keywords)]
    return min(lines, default=0)


def the_only_dot(tree: ast.Module) -> int:
    """Returns the line of the tl.dot in the kernels of a file; 0 if there are several, or none."""
    lines = [call.lineno for call in calls_in(kernels_of(tree)) if is_method_call(call, "dot")]
    return lines[0] if len(lines) == 1 else 0


def stores_only_in_loops(tree: ast.Module) -> bool:
    """Returns whether kernels store, and each store stands in a loop of its kernel."""
    kernels = [node for node in ast.walk(tree) if _is_kernel(node)]
    loops = [node for kernel in kernels for node in ast.walk(kernel) if isinstance(node, (ast.For, ast.While))]
    stores = _stores_in(kernels)
    return bool(stores) and stores == _stores_in(loops)


def line_of_only_store(tree: ast.Module) -> int:
    """Returns the line of the only call in kernels that may store; 0 if there are several, or a kernel calls
    another."""
    kernels = kernels_of(tree)
    names = {call: called_name(call) for call in calls_in(kernels)}
    stores = [one for one, name in names.items() if "store" in name or name.startswith(("atomic", "inline_asm"))]
    helpers = {kernel.name for kernel in kernels} & set(names.values())
    return stores[0].lineno if len(stores) == 1 and not helpers else 0


def stores_at_all(tree: ast.Module) -> bool:
    """Returns whether any call in kernels may store: tl.store, a descriptor's store, an atomic function, machine
    code."""
    names = {called_name(call) for call in calls_in(kernels_of(tree))}
    return any("store" in name or name.startswith(("atomic", "inline_asm")) for name in names)


def _stores_in(nodes: Iterable[ast.AST]) -> set[ast.Call]:
    return {call for call in calls_in(nodes) if is_method_call(call, "store")}


def has_mask(call: ast.Call) -> bool:
    """Returns whether a tl.load or tl.store has a mask, which is the second argument of load and the third of store."""
    place = 1 if is_method_call(call, "load") else 2
    return len(call.args) > place or any(keyword.arg == "mask" for keyword in call.keywords)
