"""Finds slips in the text of a wrong submission: lines that cannot do what their author means, whatever the values.

The text is searched only after a call has gone wrong: a right kernel may be written in any way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grader.explain.causes import Cause
from grader.explain.evidence import Place, source_line
from grader.explain.verdict import Verdict
from grader.sentences import Said, Sentence
from grader.submission.nodes import (
    Node,
    all_parameters,
    called_name,
    is_method_call,
    last_line,
    names_in,
    positional_parameters,
    statements_in,
)
from grader.submission.text import Submission, code_text, kernels_of, launches_of

KINDS = ("memory", "cause", "guess", "values")  # of verdicts that a slip in the text may explain
# Functions of tl that return a value and have no other effect.
GIVE_VALUES = frozenset({
    "abs", "broadcast_to", "cast", "cdiv", "clamp", "cos", "dot", "exp", "exp2", "expand_dims", "fma", "full", "load",
    "log", "log2", "max", "maximum", "min", "minimum", "permute", "ravel", "reshape", "rsqrt", "sigmoid", "sin",
    "softmax", "sqrt", "sum", "to", "trans", "view", "where", "zeros", "zeros_like",
})  # fmt: skip
BITS = {ast.BitAnd: "&", ast.BitOr: "|"}


class Slip(Sentence):
    PRECEDENCE = (
        "Line {line}: {operator} binds more tightly than a comparison, so that {code} is not two comparisons. Put "
        "parentheses around each, as in (rows < M) {operator} (cols < N)."
    )
    DISCARDED = "Line {line}: {code} gives a new value and changes nothing, and the line keeps it nowhere."
    MISPLACED = (
        "The launch in line {line} gives {given} to the parameter {parameter}: arguments go to the kernel's parameters "
        "in their order."
    )
    NUMBER_OF_A_PROGRAM = (
        "Line {line} adds the number of a program to its lanes: blocks that follow each other begin 1 apart then. The "
        "number times the block size is where a block begins."
    )
    MASK_OF_A_LINE = (
        "The mask in line {line} is one line of lanes, and the tile has rows and columns: two lines without [:, None] "
        "and [None, :] are compared side by side. (rows[:, None] < M) & (cols[None, :] < N) is a mask of a tile."
    )
    ADDED_TWICE = (
        "Line {line} adds {sum} twice: tl.dot(a, b, {sum}) gives the product and {sum} together. {sum} = tl.dot(a, b, "
        "{sum}) keeps that, and {sum} += tl.dot(a, b) adds the product alone."
    )
    STEP_OF_A_LOOP = (
        "The loop in line {loop} counts {name} in steps of 1, and line {line} takes it for the place where a block "
        "begins: blocks that follow each other begin 1 apart then. Let range step by the block size."
    )
    COUNTED_BLOCKS = (
        "The loop in line {loop} counts blocks, and line {line} takes {name}, the number of a block, for the place "
        "where it begins: blocks that follow each other begin 1 apart then. The number times the block size is that "
        "place."
    )
    COUNTED_PLACES = (
        "The loop in line {loop} counts {name} in steps of {step}, so that it is the place where a block begins, and "
        "line {line} takes it for the number of a block: times {step}, blocks begin too far apart."
    )
    END_OF_A_LOOP = (
        "The loop in line {loop} ends at the number of blocks, and counts {name} in steps of {step}, as places: it "
        "leaves blocks out. Let range go up to the size."
    )


ADDRESS = "address"  # the kind of a parameter


@dataclass(frozen=True)
class FoundSlip:
    """A slip. is_sure: False for an argument that may be meant so, such as a size given for another size."""

    line: int
    said: Said
    is_sure: bool = True


def blame_a_slip(verdict: Verdict, submission: Submission, first: Callable[[], FoundSlip | None]) -> None:
    """Puts the `first` slip of the text in front of the verdict's sentences, and its line in the place of its.

    A refusal of the compiler keeps its own sentences in front, unless the refused line joins comparisons without
    parentheses, or a kernel gets arguments that belong elsewhere.
    """
    refused = verdict.id == Cause.DOES_NOT_COMPILE and verdict.kind == "error"
    if not refused and verdict.kind not in KINDS:
        return
    found = next(_of_refused(submission.tree, verdict.line), None) if refused else first()
    if found is None:
        return
    seen = [one for one in verdict.said if one.sentence is not Place.LINE]
    verdict.said[:] = [found.said, *filter(None, [source_line(submission, found.line)]), *seen]
    verdict.kind, verdict.line = "error" if refused else "cause", found.line


def _of_refused(tree: ast.Module, line: int) -> Iterator[FoundSlip]:
    """Yields the slips that can be why the compiler refuses this line."""
    for kernel in kernels_of(tree):
        for node in statements_in(kernel):
            yield from (one for one in _precedence(node) if one.line == line)
    yield from (one for one in misplaced_arguments(tree) if one.is_sure)


def slips(tree: ast.Module) -> Iterator[FoundSlip]:
    """Yields the slips of the kernels, in the order of the text, then the slips of the launches."""
    for kernel in kernels_of(tree):
        statements = statements_in(kernel)
        lanes, programs = _names_of(statements, _makes_lanes), _names_of(statements, _asks_for_program)
        multiplied = [part for one in statements for part in _factors(one)]
        programs -= set(map(_name, multiplied))  # what is multiplied elsewhere numbers rows, say
        assigned = _values_of(statements)
        loops = [loop for one in statements if (loop := _loop(one)) is not None]
        compared = {name for one in statements if isinstance(one, ast.Compare) for name in names_in(one)}
        for node in statements:
            yield from _precedence(node)
            yield from _discarded(node)
            if node not in multiplied:  # blocks that begin 1 apart are no longer so once they are multiplied
                yield from _unscaled(node, lanes, programs)
                yield from _miscounted(node, lanes, loops, assigned, compared)
            yield from _mask_of_a_line(node, assigned)
            yield from _added_twice(node)
    yield from misplaced_arguments(tree)


def _precedence(node: ast.AST) -> Iterator[FoundSlip]:
    """Yields the slip in rows < M & cols < N, which means rows < (M & cols) < N, and in rows < M & (cols < N)."""
    if not isinstance(node, ast.Compare):
        return
    joined = [one for one in (node.left, *node.comparators) if isinstance(one, ast.BinOp) and type(one.op) in BITS]
    inner = [one for one in joined if one in node.comparators[:-1] or _joins_a_comparison(one)]
    if inner:
        operator = BITS[type(inner[0].op)]
        yield FoundSlip(node.lineno, Slip.PRECEDENCE(line=node.lineno, operator=operator, code=code_text(node)))


def _joins_a_comparison(node: ast.BinOp) -> bool:
    return isinstance(node.left, ast.Compare) or isinstance(node.right, ast.Compare)


def _discarded(node: ast.AST) -> Iterator[FoundSlip]:
    """Yields the slip in a statement that makes a value and does not keep it, such as tl.trans(tile)."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in GIVE_VALUES:
        yield FoundSlip(call.lineno, Slip.DISCARDED(line=call.lineno, code=code_text(call)))


def _factors(node: ast.AST) -> tuple[ast.expr, ...]:
    return (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else ()


def _unscaled(node: Node, lanes: set[str], programs: set[str]) -> Iterator[FoundSlip]:
    """Yields the slip in tl.program_id(0) + tl.arange(0, BLOCK_N)."""
    for number in _added_to_lanes(node, lanes):
        if _asks_for_program(number) or _name(number) in programs:
            yield FoundSlip(node.lineno, Slip.NUMBER_OF_A_PROGRAM(line=node.lineno))


def _added_to_lanes(node: ast.AST, lanes: set[str]) -> Iterator[ast.expr]:
    """Yields what a sum adds to lanes: where their block begins."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for number, block in ((node.left, node.right), (node.right, node.left)):
            if _makes_lanes(block) or _name(block) in lanes:
                yield number


@dataclass(frozen=True)
class _Loop:
    """A loop over range in these lines. `step`: its code, "" where there is none."""

    name: str
    stop: ast.expr
    step: str
    line: int
    last: int


def _loop(node: Node) -> _Loop | None:
    """Returns what a loop counts; None for another node, and a loop over something else than range."""
    if not isinstance(node, ast.For) or not isinstance(call := node.iter, ast.Call) or not call.args:
        return None
    if called_name(call) not in ("range", "static_range"):
        return None
    steps = [*call.args[2:], *(one.value for one in call.keywords if one.arg == "step")]
    step = code_text(steps[0]) if steps else ""
    return _Loop(_name(node.target), call.args[:2][-1], step, node.lineno, last_line(node))


def _miscounted(
    node: Node, lanes: set[str], loops: list[_Loop], assigned: dict[str, ast.expr], compared: set[str]
) -> Iterator[FoundSlip]:
    """Yields the slip where a loop counts blocks and lanes take the number for a place, or the other way round.

    compared: the names in comparisons, such as the size in a mask.
    """
    pairs = ((number, loop) for number in _added_to_lanes(node, lanes) for loop in loops)
    for number, loop in pairs:
        if not loop.line < node.lineno <= loop.last:
            continue
        name, stop, step, line = loop.name, loop.stop, loop.step, node.lineno
        if step and {name, step} == set(map(code_text, _factors(number))):
            yield FoundSlip(line, Slip.COUNTED_PLACES(name=name, loop=loop.line, line=line, step=step))
        elif _name(number) != name:
            continue
        elif step and _divisor(assigned.get(_name(stop), stop)) == step:
            yield FoundSlip(loop.line, Slip.END_OF_A_LOOP(name=name, loop=loop.line, step=step))
        elif not step and any(map(_divisor, _made_of(stop, assigned))):
            yield FoundSlip(line, Slip.COUNTED_BLOCKS(name=name, loop=loop.line, line=line))
        elif not step and compared.intersection(names_in(stop)):
            yield FoundSlip(loop.line, Slip.STEP_OF_A_LOOP(name=name, loop=loop.line, line=line))


def _divisor(node: ast.AST) -> str:
    """Returns the code of BLOCK_N in tl.cdiv(N, BLOCK_N) and in N // BLOCK_N, numbers of blocks; "" for other nodes."""
    if is_method_call(node, "cdiv") and len(node.args) == 2:
        return code_text(node.args[1])
    return code_text(node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) else ""


def _mask_of_a_line(node: ast.AST, assigned: dict[str, ast.expr]) -> Iterator[FoundSlip]:
    """Yields the slip in mask=(rows < M) & (cols < N) of an access to the addresses of a tile."""
    if not isinstance(node, ast.Call):
        return
    mask = next((one.value for one in node.keywords if one.arg == "mask"), None)
    if mask is None or not node.args or not any(map(_adds_an_axis, _made_of(node.args[0], assigned))):
        return
    parts = _made_of(mask, assigned)
    lines = {one.lineno for one in parts if isinstance(one, ast.expr) and _makes_lanes(one)}
    if len(lines) > 1 and not any(map(_adds_an_axis, parts)):
        line = next((one.lineno for one in parts if isinstance(one, ast.BinOp) and type(one.op) in BITS), mask.lineno)
        yield FoundSlip(line, Slip.MASK_OF_A_LINE(line=line))


def _added_twice(node: ast.AST) -> Iterator[FoundSlip]:
    """Yields the slip in acc += tl.dot(a, b, acc), and in acc + tl.dot(a, b, acc)."""
    pairs: list[tuple[ast.expr, ast.expr]]
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pairs = [(node.left, node.right), (node.right, node.left)]
    else:
        return
    for total, product in pairs:
        if isinstance(total, ast.Name) and is_method_call(product, "dot"):
            added = [*product.args[2:3], *(one.value for one in product.keywords if one.arg == "acc")]
            if any(_name(one) == total.id for one in added):
                yield FoundSlip(node.lineno, Slip.ADDED_TWICE(line=node.lineno, sum=total.id))


def _made_of(value: ast.expr, assigned: dict[str, ast.expr]) -> list[ast.AST]:
    """Returns the nodes of an expression, and of the values of the names in it."""
    found, waiting = [], [value]
    while waiting:
        nodes = list(ast.walk(waiting.pop()))
        names = [one.id for one in nodes if isinstance(one, ast.Name)]
        waiting += [assigned[name] for name in names if name in assigned and assigned[name] not in found]
        found += nodes
    return found


def _adds_an_axis(node: ast.AST) -> bool:
    """Returns whether the node is an index such as [:, None]."""
    return isinstance(node, ast.Subscript) and any(
        isinstance(one, ast.Constant) and one.value is None for one in ast.walk(node.slice)
    )


def misplaced_arguments(tree: ast.Module) -> Iterator[FoundSlip]:
    """Yields the first misplaced argument of each launch: it has the name of another parameter, or is a stride and its
    parameter is not."""
    kernels = {kernel.name: kernel for kernel in kernels_of(tree)}
    for launch in launches_of(tree):
        if launch.kernel not in kernels:
            continue
        names = all_parameters(kernels[launch.kernel])
        for given, parameter in zip(launch.call.args, positional_parameters(kernels[launch.kernel])):
            if isinstance(given, ast.Starred):
                break  # it stands for an unknown number of arguments
            if _belongs_elsewhere(given, parameter, names):
                line = launch.call.lineno
                said = Slip.MISPLACED(line=line, given=code_text(given), parameter=parameter)
                kind = _kind(parameter)
                yield FoundSlip(line, said, is_sure=kind == ADDRESS or kind != _kind(_own(given, names)))
                break


def _own(given: ast.expr, names: list[str]) -> str:
    """Returns the parameter with an argument's name, else that name itself; "stride" for x.stride(0)."""
    name = given.id if isinstance(given, ast.Name) else "stride"
    return next((one for one in (name, f"{name}_ptr") if one in names), name)


def _kind(parameter: str) -> str:
    """Returns "address", "stride" or "number", guessed from the name of a parameter."""
    return ADDRESS if parameter.endswith("_ptr") else "stride" if parameter.startswith("stride") else "number"


def _belongs_elsewhere(given: ast.expr, parameter: str, names: list[str]) -> bool:
    if isinstance(given, ast.Name):
        own = [name for name in (given.id, f"{given.id}_ptr") if name in names]
        may_be_stride = parameter.startswith("stride") and _kind(_own(given, names)) != ADDRESS
        return bool(own) and parameter not in own and not may_be_stride  # N is a stride of a contiguous tensor
    is_stride = is_method_call(given, "stride")
    strides = [name for name in names if name.startswith("stride")]
    return is_stride and bool(strides) and parameter not in strides


def _names_of(nodes: list[Node], makes: Callable[[ast.expr], bool]) -> set[str]:
    """Returns the names that are assigned exactly once, to a value for which `makes` is true."""
    return {name for name, value in _values_of(nodes).items() if makes(value)}


def _values_of(nodes: list[Node]) -> dict[str, ast.expr]:
    """Returns the names that are assigned exactly once, each with its value."""
    assigned = [(node.targets[0], node.value) for node in nodes if isinstance(node, ast.Assign)]
    pairs = [pair for target, value in assigned for pair in _paired(target, value)]
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {one.id: value for one, value in pairs if isinstance(one, ast.Name) and stored.count(one.id) == 1}


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Returns a pair of target and value for each part of `s, b = tl.program_id(0), tl.program_id(1)`."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _makes_lanes(value: ast.expr) -> bool:
    """Returns whether the value is a call such as tl.arange(0, BLOCK_N), also with an index as [:, None]."""
    value = value.value if isinstance(value, ast.Subscript) else value
    return is_method_call(value, "arange")


def _asks_for_program(value: ast.expr) -> bool:
    """Returns whether the value is a call such as tl.program_id(0), also with % or // after it."""
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod | ast.FloorDiv):
        value = value.left
    return is_method_call(value, "program_id")


def _name(value: ast.expr) -> str:
    """Returns the name in `k` or `k[:, None]`; "" for any other expression."""
    value = value.value if isinstance(value, ast.Subscript) else value
    return value.id if isinstance(value, ast.Name) else ""
