"""A submission as text: read, decoded and parsed, never imported. Problems become failures here.

The judge process reads this text and must not run it. What cannot be decoded, parsed or walked is told as a failure of
the file, so that nothing behind has to ask again.
"""

from __future__ import annotations

import ast
import codecs
import io
import re
import stat
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeGuard

from grader.submission.nodes import (
    called_name,
    calls_in,
    covers,
    last_line,
    names_in,
    positional_parameters,
    whole_number,
)  # fmt: skip
from grader.wire.messages import Failure
from grader.wire.printable import one_line

MOST_BYTES = 1 << 20
CONFLICT = "a merge has left both texts there: keep one, and remove the lines that begin with <<<, === and >>>"
MOST_NODES = 20_000  # of a file's syntax tree; the largest solution has 2127
MOST_SHOWN = 60  # characters of an expression in a message
LITTLE = 1e-3
NARROW = {"float16": "fp16", "bfloat16": "bf16"}  # names of tl, and short ones
LINE_END = re.compile(r"\r\n|\r|\n")
# Code that reads a syntax tree recurses per level, and Python limits recursion.
MOST_LEVELS = 100  # of nodes; the deepest of Triton's and torch's own files have 27


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

    @cached_property
    def names_in_functions(self) -> dict[str, set[str]]:
        """The names that stand in each function of the file, by its name; "" has those outside of all functions."""
        names = defaultdict[str, set[str]](set)
        for node in self.tree.body:
            names[node.name if isinstance(node, ast.FunctionDef) else ""].update(names_in(node))
        return names

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
    return submission_of(path, source)


def submission_of(path: Path, source: bytes) -> Submission:
    """Returns the submission of a file with these bytes. Never raises."""
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
        conflict = next((n for n, line in enumerate(text.splitlines(), 1) if line.startswith("<<<<<<< ")), 0)
        return Failure("syntax", "SyntaxError", CONFLICT if conflict else error.msg, conflict or error.lineno or 0)
    except ValueError as error:  # a null byte
        return Failure("syntax", type(error).__name__, str(error)[:200])
    except (RecursionError, MemoryError):  # which the parser raises for what it cannot follow
        return Failure("nested", message=str(MOST_LEVELS))
    if line := line_nested_too_deep(tree):
        return Failure("nested", message=str(MOST_LEVELS), line=line)
    return tree


def lines_reached(submission: Submission, named: str) -> tuple[str, ...]:
    """Returns the file's lines, but empty lines for each function that is reached neither from outside of functions nor
    from those whose names occur in the text `named`. What is made of these is the same for the same lines."""
    names = submission.names_in_functions
    waiting = ["", *(name for name in names if name in named)]
    lines, reached = submission.lines, set[str]()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += names.get(name, ())
    for node in submission.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name not in reached:
            first, last = min([node.lineno, *(one.lineno for one in node.decorator_list)]), last_line(node)
            lines[first - 1 : last] = [""] * (last + 1 - first)
    return tuple(lines)


def _is_kernel(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any("jit" in ast.dump(d) for d in node.decorator_list)


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


def line_of_option(tree: ast.Module, kernel: str, name: str) -> int:
    """Returns the line of an option in the only launch of a kernel that states it; 0 where there is none, or more."""
    calls = [one.call for one in launches_of(tree) if one.kernel == kernel]
    lines = [keyword.value.lineno for call in calls for keyword in call.keywords if keyword.arg == name]
    return lines[0] if len(lines) == 1 else 0


def given_by_name(tree: ast.Module, line: int) -> set[str]:
    """Returns the parameters of a kernel to which the launch in this line gives variables of their names, such as x for
    x_ptr."""
    kernels, parameters = {kernel.name: kernel for kernel in kernels_of(tree)}, set[str]()
    for launch in launches_of(tree):
        if covers(launch.call, line) and launch.kernel in kernels:
            for given, parameter in zip(launch.call.args, positional_parameters(kernels[launch.kernel])):
                if isinstance(given, ast.Starred):
                    break  # it stands for an unknown number of arguments
                if isinstance(given, ast.Name) and parameter in (given.id, f"{given.id}_ptr"):
                    parameters.add(parameter)
    return parameters


def factors(tree: ast.Module, line: int, names: Collection[str]) -> set[str]:
    """Returns the variables that this line multiplies by one of these names."""
    products = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)]
    sides = [{side.id for side in (node.left, node.right) if isinstance(side, ast.Name)}
             for node in products if node.lineno == line]  # fmt: skip
    return {name for pair in sides if not pair.isdisjoint(names) for name in pair}


def literals_in_kernels(tree: ast.Module, numbers: Collection[int]) -> list[tuple[int, int]]:
    """Returns (number, line) for each place in kernels where one of these numbers is written."""
    inner = (one for node in ast.walk(tree) if _is_kernel(node) for part in node.body for one in ast.walk(part))
    written = [(whole_number(constant), constant.lineno) for constant in inner if isinstance(constant, ast.Constant)]
    return [(number, line) for number, line in written if number is not None and number in numbers]


@dataclass(frozen=True)
class NarrowSum:
    """A variable of a kernel that begins as zeros of 16 bits, and the lines that add to it."""

    name: str
    dtype: str  # fp16 or bf16
    line: int  # of the zeros
    added: tuple[int, ...]


def narrow_sums(tree: ast.Module) -> list[NarrowSum]:
    """Returns the variables that begin as tl.zeros or tl.full of 16 bits, and to which a kernel adds afterwards."""
    found = []
    for kernel in kernels_of(tree):
        nodes = list(ast.walk(kernel))
        stored = [(one.targets[0], one.value) for one in nodes if isinstance(one, ast.Assign)]
        grown: list[ast.expr] = [one.target for one in nodes if isinstance(one, ast.AugAssign)]
        grown += [target for target, value in stored if _names_it(value, target)]
        for target, value in stored:
            added = tuple(one.lineno for one in grown if ast.unparse(one) == ast.unparse(target))
            if not added or not isinstance(value, ast.Call) or called_name(value) not in ("zeros", "full"):
                continue
            words = {one.attr for one in ast.walk(value) if isinstance(one, ast.Attribute)}
            found += [NarrowSum(ast.unparse(target), NARROW[word], value.lineno, added) for word in words & {*NARROW}]
    return found


def _names_it(value: ast.expr, target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and any(
        isinstance(one, ast.Name) and one.id == target.id for one in ast.walk(value)
    )


def lines_that_add_little(tree: ast.Module) -> list[int]:
    """Returns the lines of kernels that add a number of the text between 0 and LITTLE, as against a division by 0."""
    kernels = [node for node in ast.walk(tree) if _is_kernel(node)]
    sums = [
        (node, (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,))
        for kernel in kernels for node in ast.walk(kernel)
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Add)
    ]  # fmt: skip
    named = {
        target.id for one in tree.body if isinstance(one, ast.Assign) and any(map(_is_little, ast.walk(one.value)))
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    little = (node for node, parts in sums for one in parts if _is_little(one) or getattr(one, "id", "") in named)
    return sorted({node.lineno for node in little})


def _is_little(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value < LITTLE


def call_at(tree: ast.Module, line: int, column: int, *functions: str) -> ast.Call | None:
    """Returns the innermost call around this place of a function with one of these words in its name; None if there is
    none."""
    around = [
        call for call in _calls_with(tree, functions)
        if (call.lineno, call.col_offset) <= (line, column) <= (last_line(call), call.end_col_offset or 0)
    ]  # fmt: skip
    return max(around, key=lambda call: (call.lineno, call.col_offset), default=None)


def calls_in_line(tree: ast.Module, line: int, *functions: str) -> list[ast.Call]:
    """Returns the calls that begin in this line, of functions with one of these words in their names."""
    return [call for call in _calls_with(tree, functions) if call.lineno == line]


def constant_of_arange(tree: ast.Module, line: int) -> str:
    """Returns a parameter that a tl.arange of this line takes, if it takes tl.constexpr parameters and numbers alone;
    "" otherwise."""
    kernel = next((one for one in kernels_of(tree) if one.lineno <= line <= (one.end_lineno or 0)), None)
    if kernel is None:
        return ""
    arguments = [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]
    constants = {one.arg for one in arguments if one.annotation and "constexpr" in ast.unparse(one.annotation)}
    for call in calls_in_line(tree, line, "arange"):
        names = [node.id for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Name)]
        if names and constants.issuperset(names):
            return names[-1]
    return ""


def _calls_with(tree: ast.Module, words: Collection[str]) -> list[ast.Call]:
    return [call for call in calls_in([tree]) if any(word in called_name(call) for word in words)]


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
        arguments: dict[int | str | None, ast.expr] = {keyword.arg: keyword.value for keyword in node.keywords}
        arguments |= dict(enumerate(node.args))
        tensor = arguments.get(0, arguments.get("tensor", arguments.get("base")))
        block = arguments.get(1 if of_tensor else 3, arguments.get("block_shape"))
        made.append(MadeDescriptor(node.lineno, _short_text(tensor), _short_text(block)))
    return sorted(made, key=lambda descriptor: descriptor.line)


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


def line_of_division(tree: ast.Module, line: int) -> int:
    """Returns the last line up to this one in which a kernel divides with / for a value used here; 0 if there is
    none."""
    kernel = next((node for node in kernels_of(tree) if covers(node, line)), None)
    used: set[str] = set()
    statements = [node for node in ast.walk(kernel) if isinstance(node, ast.stmt)] if kernel is not None else []
    for node in sorted(statements, key=lambda node: node.lineno, reverse=True):
        parts = list(ast.walk(node.iter if isinstance(node, ast.For) else node))
        stored = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        here = covers(node, line) and not isinstance(node, ast.For | ast.FunctionDef)
        here |= isinstance(node, ast.For) and node.lineno == line
        if node.lineno > line or not here and not stored & used or isinstance(node, ast.FunctionDef):
            continue
        if any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) for part in parts):
            return node.lineno
        used |= {part.id for part in parts if isinstance(part, ast.Name)}
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


def line_nested_too_deep(tree: ast.Module) -> int:
    """Returns the first line with a part that lies deeper than MOST_LEVELS; 0 where there is none."""
    level: list[ast.AST] = [tree]
    for _ in range(MOST_LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return min((node.lineno for node in level if hasattr(node, "lineno")), default=0)
