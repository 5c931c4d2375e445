"""Operators make the mistakes that any kernel can have: each changes one place of a solution.

They are stated once for all exercises. An exercise proves with them that it notices what nobody has to think of: a
mask that is missing, a stride that is left out, a grid that is too small, a result that is kept from the last call.
Each place where an operator applies gives a mutant (grader/author/mutants.py), called after the operator, and numbered
from the second place on: no_load_mask, no_load_mask_2. An operator states what rejects such a mutant in any exercise.

solutions/NN_name/mistakes.toml names the places where the change is no mistake, and says why:

    [operators]
    no_other_2 = "these rows are not stored"

A mutant that the file states under the name of an operator stands in the place of the operator's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

ANY = " ... "  # a sentence that depends on the kernel
Change = tuple[int, int, str]  # of a text: where it begins, where it ends, and what stands there instead


@dataclass(frozen=True)
class Operator:
    """`wrong`: what the mutants do. `finding`: the causes that may reject them; "" where it depends on the kernel.
    `sentence`: a part of the message, in the notation of mutants. `places`: yields the changes of each place."""

    name: str
    wrong: str
    finding: str
    sentence: str
    places: Callable[[Solution], Iterator[list[Change]]]


class Solution:
    """The text of a solution and its syntax tree, in which operators look for places."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    @cached_property
    def kernels(self) -> list[ast.FunctionDef]:
        return [one for one in self._functions if one.decorator_list]

    @cached_property
    def hosts(self) -> list[ast.FunctionDef]:
        return [one for one in self._functions if not one.decorator_list]

    @property
    def entry(self) -> ast.FunctionDef:
        """The function that the tests call: the last of the file."""
        return self.hosts[-1]

    @cached_property
    def _functions(self) -> list[ast.FunctionDef]:
        return [one for one in self.tree.body if isinstance(one, ast.FunctionDef)]

    def in_kernels(self, kind: type) -> Iterator:
        """Yields the nodes of this kind in the bodies of kernels, in the order of the text."""
        yield from _in_order((node for kernel in self.kernels for node in _body_of(kernel)), kind)

    def in_entry(self, kind: type) -> Iterator:
        yield from _in_order(_body_of(self.entry), kind)

    def launches(self) -> Iterator[ast.Call]:
        """Yields the calls kernel[grid](...) of the entry."""
        yield from (call for call in self.in_entry(ast.Call) if isinstance(call.func, ast.Subscript))

    def calls(self, name: str) -> Iterator[ast.Call]:
        """Yields the calls of tl.NAME in kernels."""
        for call in self.in_kernels(ast.Call):
            if ast.unparse(call.func) == f"tl.{name}":
                yield call

    def grids(self) -> list[ast.expr]:
        """Returns the grid of each launch, as it is written there."""
        return [launch.func.slice for launch in self.launches() if isinstance(launch.func, ast.Subscript)]

    def grid_axes(self) -> Iterator[ast.expr]:
        """Yields how many programs each launch starts along each axis, as far as the entry writes a tuple."""
        written = self.grids()
        names = {node.id for node in written if isinstance(node, ast.Name)}
        for node in self.in_entry(ast.Assign):
            if isinstance(node.targets[0], ast.Name) and node.targets[0].id in names:
                written.append(node.value)
        yield from (axis for grid in written if isinstance(grid, ast.Tuple) for axis in grid.elts)

    def block_starts(self) -> Iterator[ast.BinOp]:
        """Yields the products of a program's number and a block size in kernels."""
        for node in self.in_kernels(ast.BinOp):
            is_size = isinstance(node.right, ast.Name) and node.right.id.startswith("BLOCK")
            is_program = isinstance(node.left, (ast.Name, ast.Call)) and "id" in self.text_of(node.left)
            if isinstance(node.op, ast.Mult) and is_size and is_program:
                yield node

    def span(self, node) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def text_of(self, node) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def without(self, call: ast.Call, *names: str) -> list[Change]:
        """Returns the changes that take these keywords from a call; none where it has no such keyword."""
        changes = []
        for keyword in call.keywords:
            if keyword.arg in names:
                start, end = self.span(keyword)
                changes.append((self.text.rindex(",", 0, start), end, ""))
        return changes

    def instead(self, node, new: str) -> list[Change]:
        """Returns the change that writes `new` for a node; {} stands for the node's own text."""
        return [(*self.span(node), new.replace("{}", self.text_of(node)))]

    def without_factor(self, product: ast.BinOp) -> list[Change]:
        """Returns the change that takes the right factor from a product."""
        start = self.text.rindex("*", self.span(product.left)[1], self.span(product.right)[0])
        return [(start - 1, self.span(product.right)[1], "")]

    def before(self, statement: ast.stmt, lines: str) -> Change:
        """Returns the change that writes these lines before a statement, at its depth."""
        start = self._starts[statement.lineno - 1]
        return (start, start, "".join(f"{' ' * statement.col_offset}{line}\n" for line in lines.splitlines()))

    def changed(self, changes: list[Change]) -> str:
        text = self.text
        for start, end, new in sorted(changes, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _at(self, line: int, column: int) -> int:
        """Returns the place in the text; columns of syntax trees count bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _body_of(function: ast.FunctionDef) -> Iterator[ast.AST]:
    return (node for statement in function.body for node in ast.walk(statement))


def _in_order(nodes: Iterator[ast.AST], kind: type) -> list:
    return sorted((node for node in nodes if isinstance(node, kind)), key=lambda node: (node.lineno, node.col_offset))


# ---- in the kernel: memory


def _no_mask(access: str) -> Callable[[Solution], Iterator[list[Change]]]:
    return lambda s: (changes for call in s.calls(access) if (changes := s.without(call, "mask", "other")))


def _no_other(s: Solution) -> Iterator[list[Change]]:
    yield from (changes for call in s.calls("load") if (changes := s.without(call, "other")))


def _bounds(s: Solution, more: str) -> Iterator[list[Change]]:
    """Yields comparisons of places with a size, the size changed."""
    for node in s.in_kernels(ast.Compare):
        if isinstance(node.ops[0], ast.Lt) and isinstance(node.comparators[0], ast.Name):
            yield s.instead(node.comparators[0], more)


def _or_mask(s: Solution) -> Iterator[list[Change]]:
    for node in s.in_kernels(ast.BinOp):
        if isinstance(node.op, ast.BitAnd):
            left, right = s.span(node.left)[1], s.span(node.right)[0]
            yield [(left, right, s.text[left:right].replace("&", "|"))]


def _no_stride(s: Solution) -> Iterator[list[Change]]:
    for node in s.in_kernels(ast.BinOp):
        if isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name) and node.right.id.startswith("stride"):
            yield s.without_factor(node)


def _program_ids(new: str) -> Callable[[Solution], Iterator[list[Change]]]:
    return lambda s: (s.instead(call, new) for call in s.calls("program_id"))


def _no_block_size(s: Solution) -> Iterator[list[Change]]:
    yield from map(s.without_factor, s.block_starts())


def _written_back(s: Solution) -> Iterator[list[Change]]:
    """Yields loads into a variable after which twice the values are stored where they came from."""
    for node in s.in_kernels(ast.Assign):
        call = node.value
        while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            call = call.func.value
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "tl.load" and isinstance(node.targets[0], ast.Name):
            mask = next((f", mask={s.text_of(one.value)}" for one in call.keywords if one.arg == "mask"), "")
            store = f"\n{' ' * node.col_offset}tl.store({s.text_of(call.args[0])}, {node.targets[0].id} * 2{mask})"
            end = s.span(node)[1]
            yield [(end, end, store)]


def _added(s: Solution) -> Iterator[list[Change]]:
    yield from (s.instead(call.func, "tl.atomic_add") for call in s.calls("store"))


def _fixed_block_size(s: Solution) -> Iterator[list[Change]]:
    """Yields the block sizes that the file states and a grid counts, each as a number in the place of its name in a
    kernel. A loop may go in steps of any size."""
    sizes: dict[str, str] = {}
    for node in (one for one in s.tree.body if isinstance(one, ast.Assign)):
        names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        sizes |= {ast.unparse(name): s.text_of(value) for name, value in zip(names, values)}
    counted = dict.fromkeys(s.text_of(node.right) for node in s.block_starts())
    for name in (one for one in counted if one in sizes):
        used = (node for node in s.in_kernels(ast.Name) if node.id == name)
        yield [change for node in used for change in s.instead(node, sizes[name])]


def _no_constexpr(s: Solution) -> Iterator[list[Change]]:
    for kernel in s.kernels:
        for one in kernel.args.args:
            if one.annotation is not None and one.arg.startswith("BLOCK"):
                yield [(s.span(one)[0] + len(one.arg), s.span(one)[1], "")]


# ---- in the kernel: values


def _stored(new: str) -> Callable[[Solution], Iterator[list[Change]]]:
    return lambda s: (s.instead(call.args[1], new) for call in s.calls("store"))


def _no_int64(s: Solution) -> Iterator[list[Change]]:
    for call in s.in_kernels(ast.Call):
        if isinstance(call.func, ast.Attribute) and ast.unparse(call).endswith(".to(tl.int64)"):
            yield [(s.span(call.func.value)[1], s.span(call)[1], "")]


def _half_sums(s: Solution) -> Iterator[list[Change]]:
    for name in ("zeros", "full"):
        for call in s.calls(name):
            for node in ast.walk(call):
                if isinstance(node, ast.Attribute) and ast.unparse(node) == "tl.float32":
                    yield s.instead(node, "tl.float16")


def _loops(new: str) -> Callable[[Solution], Iterator[list[Change]]]:
    """Returns an operator that changes where a loop over blocks ends. In `new` {begin}, {end} and {step} stand for the
    arguments of range."""

    def places(s: Solution) -> Iterator[list[Change]]:
        for node in s.in_kernels(ast.For):
            if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range" and len(node.iter.args) == 3:
                begin, end, step = map(s.text_of, node.iter.args)
                yield [(*s.span(node.iter.args[1]), new.format(begin=begin, end=end, step=step))]

    return places


# ---- in the host function


def _contiguous(s: Solution) -> Iterator[list[Change]]:
    first = next(one for one in s.entry.body if not isinstance(one, ast.Expr))
    for argument in s.entry.args.args[:1]:
        yield [s.before(first, f"{argument.arg} = {argument.arg}.contiguous()")]


def _always_fp32(s: Solution) -> Iterator[list[Change]]:
    for call in s.in_entry(ast.Call):
        for keyword in call.keywords:
            if keyword.arg == "dtype" and s.text_of(keyword.value).endswith(".dtype"):
                yield s.instead(keyword.value, "torch.float32")


def _result_on_the_cpu(s: Solution) -> Iterator[list[Change]]:
    for call in s.in_entry(ast.Call):
        yield from (s.instead(keyword.value, '"cpu"') for keyword in call.keywords if keyword.arg == "device")


def _returned(new: str) -> Callable[[Solution], Iterator[list[Change]]]:
    """Returns an operator that returns something else. In `new` {} stands for what was returned, {0} for the entry's
    first argument."""

    def places(s: Solution) -> Iterator[list[Change]]:
        for node in list(s.in_entry(ast.Return))[-1:]:
            if node.value is not None:
                yield s.instead(node.value, new.replace("{0}", s.entry.args.args[0].arg))

    return places


def _cached_output(s: Solution) -> Iterator[list[Change]]:
    """Yields the last return, which keeps its result for the next call with a tensor of this shape."""
    first = next(one for one in s.entry.body if not isinstance(one, ast.Expr))
    argument = s.entry.args.args[0].arg
    for node in list(s.in_entry(ast.Return))[-1:]:
        key = f"({argument}.shape, {argument}.dtype)"
        asked = s.before(first, f"if {key} in CACHE:\n    return CACHE[{key}]")
        kept = s.instead(node, f"CACHE[{key}] = {s.text_of(node.value)}\n{' ' * node.col_offset}return CACHE[{key}]")
        start = s.span(s.kernels[0].decorator_list[0])[0] - 1
        yield [(start, start, "CACHE = {}\n\n\n"), asked, *kept]


def _grids(new: str) -> Callable[[Solution], Iterator[list[Change]]]:
    return lambda s: (s.instead(axis, new) for axis in s.grid_axes())


def _floor(s: Solution) -> Iterator[list[Change]]:
    for axis in s.grid_axes():
        for node in ast.walk(axis):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "triton.cdiv":
                yield s.instead(node, " // ".join(map(s.text_of, node.args)))


def _on_axis_one(s: Solution) -> Iterator[list[Change]]:
    """Yields the grids of one axis with all of their programs on the second."""
    ids = list(s.calls("program_id"))
    grids = s.grids()
    grid = grids[0] if len(grids) == 1 else None
    if isinstance(grid, ast.Tuple) and len(grid.elts) == 1 and {*map(ast.unparse, ids)} == {"tl.program_id(0)"}:
        moved = [change for call in ids for change in s.instead(call, "tl.program_id(1)")]
        yield moved + s.instead(grid, f"(1, {s.text_of(grid.elts[0])})")


def _strides_of_zero(s: Solution) -> Iterator[list[Change]]:
    """Yields the strides of arguments that a launch is given: those of a new tensor are never 0."""
    arguments = {one.arg for one in s.entry.args.args}
    for call in [node for launch in s.launches() for node in ast.walk(launch) if isinstance(node, ast.Call)]:
        tensor, _, method = s.text_of(call.func).partition(".")
        if method == "stride" and tensor in arguments:
            yield s.instead(call, "({} or 1)" if call.args else "(n or 1 for n in {})")


def _strides_swapped(s: Solution) -> Iterator[list[Change]]:
    for launch in s.launches():
        for one, following in pairwise([*launch.args, None]):
            if isinstance(one, ast.Starred) and s.text_of(one).endswith(".stride()"):
                yield s.instead(one, "{}[::-1]")
            elif following is not None and (s.text_of(one).endswith(".stride(0)")):
                yield s.instead(one, s.text_of(following)) + s.instead(following, s.text_of(one))


def _launch_statements(s: Solution) -> Iterator[ast.stmt]:
    launches = list(s.launches())
    yield from (node for node in s.in_entry(ast.Expr) if node.value in launches)


def _two_launches(s: Solution) -> Iterator[list[Change]]:
    yield from ([s.before(node, ast.unparse(node))] for node in _launch_statements(s))


def _no_launch(s: Solution) -> Iterator[list[Change]]:
    yield from (s.instead(node, "pass") for node in _launch_statements(s))


OPERATORS = (
    Operator("no_load_mask", "a load has no mask.", "oob-load foreign-memory", ANY, _no_mask("load")),
    Operator("no_store_mask", "a store has no mask.", "oob-store double-write", ANY, _no_mask("store")),
    Operator("no_other", "a load has a mask and no `other`.", "no-other", "no `other`", _no_other),
    Operator("bound_one_more", "a bound is one more than the size.", "", ANY, lambda s: _bounds(s, "{} + 1")),
    Operator("bound_one_less", "a bound is one less than the size.", "", ANY, lambda s: _bounds(s, "{} - 1")),
    Operator("or_mask", "two conditions of a mask are joined by or.", "", ANY, _or_mask),
    Operator("no_stride", "a stride is left out.", "", ANY, _no_stride),
    Operator("no_pid", "a program's number is always 0.", "", ANY, _program_ids("({} * 0)")),
    Operator(
        "pid_in_int16",
        "a program's number is kept in 16 bits.",
        "offset-overflow",
        "int16",
        _program_ids("{}.to(tl.int16)"),
    ),
    Operator("no_block_size", "blocks lie one element apart.", "", ANY, _no_block_size),
    Operator("written_back", "values are stored over what was loaded.", "", ANY, _written_back),
    Operator("added_to_result", "results are added to what is there.", "", ANY, _added),
    Operator("fixed_block_size", "a block size is a number.", "", ANY, _fixed_block_size),
    Operator("no_constexpr", "a block size is no constexpr.", "does-not-compile", ANY, _no_constexpr),
    Operator("zeros", "zeros are stored.", "", ANY, _stored("({}) * 0")),
    Operator("nan", "NaN is stored.", "", ANY, _stored('({}) * float("nan")')),
    Operator("rounds_to_fp16", "a result goes through fp16.", "", ANY, _stored("({}).to(tl.float16).to(tl.float32)")),
    Operator("half_accumulator", "sums live in fp16.", "", ANY, _half_sums),
    Operator("no_int64", "offsets stay in 32 bits.", "offset-overflow", ANY, _no_int64),
    Operator("floor_loop", "a loop leaves the last, partial block out.", "", ANY, _loops("{end} - {step} + 1")),
    Operator("first_block_only", "a loop takes the first block alone.", "", ANY, _loops("{begin} + {step}")),
    Operator(
        "contiguous_on_host",
        "an input is copied first.",
        "torch-did-it",
        "does work that your kernel has to do",
        _contiguous,
    ),
    Operator(
        "always_fp32", "a result is fp32, whatever the inputs are.", "wrong-result-type", "has dtype fp32", _always_fp32
    ),
    Operator("result_on_the_cpu", "a result lies in the CPU's memory.", "", ANY, _result_on_the_cpu),
    Operator("result_copied", "torch copies the result.", "", ANY, _returned("{}.clone()")),
    Operator("returns_none", "nothing is returned.", "wrong-result-type", ANY, _returned("None")),
    Operator("input_returned", "the first input is returned.", "wrong-result-type", ANY, _returned("{0}")),
    Operator(
        "cached_output",
        "the result of the last call with this shape is returned.",
        "wrong-result-type",
        "an earlier call",
        _cached_output,
    ),
    Operator("grid_too_small", "the grid has one program less along an axis.", "", ANY, _grids("{} - 1")),
    Operator("grid_too_large", "the grid has one program more along an axis.", "", ANY, _grids("{} + 1")),
    Operator("floor_grid", "a partial block gets no program.", "", ANY, _floor),
    Operator(
        "programs_on_axis_one",
        "programs are counted on axis 1, which has 65535 at most.",
        "not-recordable",
        "65535",
        _on_axis_one,
    ),
    Operator("stride_zero_means_one", "a stride of 0 is taken for 1.", "", ANY, _strides_of_zero),
    Operator("strides_swapped", "two strides of a tensor are exchanged.", "", ANY, _strides_swapped),
    Operator("two_launches", "the kernel is launched twice.", "", ANY, _two_launches),
    Operator("no_launch", "a kernel is not launched.", "", ANY, _no_launch),
)


def changed_solutions(solution: str) -> Iterator[tuple[str, Operator, str]]:
    """Yields each place of each operator in a solution: the mutant's name, the operator, the whole text."""
    try:
        parsed = Solution(solution)
    except SyntaxError:  # which the proof of the solution itself tells
        return
    for operator in OPERATORS if parsed.kernels and parsed.hosts else ():
        for number, changes in enumerate(operator.places(parsed), 1):
            name = operator.name if number == 1 else f"{operator.name}_{number}"
            yield name, operator, parsed.changed(changes)
