"""Explains a variable to which a loop of a kernel gives another type or shape: both types, and the line."""

from __future__ import annotations

import ast
import re

from grader.sentences import Said, Sentence
from grader.wire.messages import Failure

CHANGES = re.compile(
    r"Loop-carried variable (?P<name>\w+) has initial type (?P<first>.*?) but is re-assigned to (?P<last>.*?) in loop"
)
TILE = re.compile(r"<\[(.*)\], (.*)>")  # the type of a tile, as Triton writes it: <['64', '32'], fp16>
POINTER = re.compile(r"pointer<(.*)>")


class LoopVariable(Sentence):
    """Sentences about the variable. {where} names the line of loop or assignment: "The compiler refuses line 12"."""

    CHANGES = (
        "{where}: {name} begins the loop as {first} and leaves it as {last}: a variable keeps its type and shape "
        "through a loop."
    )
    BECOMES = (
        "{where}: {name} begins the loop of line {loop} as {first}, and here it becomes {last}: a variable keeps its "
        "type and shape through a loop.{replaced}"
    )
    REPLACED = " Each iteration replaces {name}: += adds to what it was."


def loop_variable(failure: Failure, tree: ast.Module) -> tuple[Said, int] | None:
    """Returns the sentence about a loop's variable, and its line; None if the failure has another cause."""
    found = CHANGES.search(failure.message)
    if found is None:
        return None
    name = found["name"]
    types = dict(first=in_words(found["first"]), last=in_words(found["last"]))
    line, is_new = _only_assignment(name, failure.line, tree)
    place = line or failure.line
    where = f"The compiler refuses {f'line {place}' if place else 'the kernel'}"
    if line:
        replaced = LoopVariable.REPLACED(name=name).text if is_new else ""
        return LoopVariable.BECOMES(where=where, name=name, loop=failure.line, replaced=replaced, **types), line
    return LoopVariable.CHANGES(where=where, name=name, **types), failure.line


def in_words(kind: str) -> str:
    """Returns "fp16 [64, 32]" for <['64', '32'], fp16>, "pointer to fp16" for pointer<fp16>; else the type as it is."""
    if tile := TILE.fullmatch(kind):
        return f"{in_words(tile[2])} [{', '.join(re.findall(r'[0-9]+', tile[1]))}]"
    pointer = POINTER.fullmatch(kind)
    return f"pointer to {in_words(pointer[1])}" if pointer else kind


def _only_assignment(name: str, loop: int, tree: ast.Module) -> tuple[int, bool]:
    """Returns the line of the only assignment to a variable in the loop that begins at line `loop`, and whether
    nothing in the loop reads the variable; line 0 if there are none or several."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While) and node.lineno == loop]
    inside = [node for one in loops for statement in one.body for node in ast.walk(statement)]
    stored = [n for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == name]
    is_read = any(isinstance(n, ast.AugAssign) and n.target in stored for n in inside) or any(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id == name for n in inside
    )
    return stored[0].lineno if len(stored) == 1 else 0, not is_read
