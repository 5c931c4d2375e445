"""Explains a name that a kernel uses and does not know, from where else the file uses it."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Iterable

from grader.sentences import Said, Sentence
from grader.submission.nodes import called_name, calls_in, covers
from grader.submission.public_names import members

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
NEARLY = 0.6  # cutoff of difflib.get_close_matches; the ratio of BLOCK and BLOCK_N is 0.83


class UnknownName(Sentence):
    """Sentences about an unknown name. {where}: "The compiler refuses line 12"."""

    NOT_DEFINED = "{where}: {name} is not defined: nothing in the file is called so."
    MATH = (
        "{where}: the file does not import math: add `import math` at its top. It computes with numbers, and tl with "
        "tiles, as in tl.sqrt(x)."
    )
    MATH_ON_TILES = (
        "{where}: the file does not import math, which computes with Python's numbers: for a value of the kernel it is "
        "tl.{function}."
    )
    OF_TL = "{where}: {name} is not defined. In a kernel it is tl.{function}."
    MISSPELT = "{where}: {name} is not defined. Is {near} meant?"
    NO_FIRST_VALUE = (
        "{where}: {name} has no value that {operator} could change: give it one before, as in "
        "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)."
    )
    BUILTIN = (
        "{where}: {name} is not known there: it is a built-in of Python that kernels lack (tl has sum, max, abs and "
        "others)."
    )
    NOT_ON_EVERY_PATH = (
        "{where}: {name} is not known there: the kernel assigns it in a branch or a loop that may be left out, or only "
        "further down."
    )
    ELSEWHERE = (
        "{where}: {name} is not known there: it belongs to another part of the file, and a kernel gets such values as "
        "arguments."
    )


def unknown_name(where: str, name: str, tree: ast.Module, line: int) -> Said:
    """Returns the sentence for the compiler's message that a name is not defined, in this line of a kernel."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [node for node in functions if covers(node, line)]
    own = _bound(ast.walk(around[-1])) if around else set()  # the last is the innermost
    if name in own and (operator := _changed_first(around[-1], name, line)):
        return UnknownName.NO_FIRST_VALUE(where=where, name=name, operator=operator)
    if name in own:
        return UnknownName.NOT_ON_EVERY_PATH(where=where, name=name)
    if name in _bound(ast.walk(tree)):
        return UnknownName.ELSEWHERE(where=where, name=name)
    call = next((one for one in calls_in([tree]) if covers(one, line) and _is_of(one, name)), None)
    function = called_name(call) if call is not None else ""
    if name == "math":
        on_tiles = call is not None and function in members("triton.language") and _has_values(call, around)
        return UnknownName.MATH_ON_TILES(where=where, function=function) if on_tiles else UnknownName.MATH(where=where)
    if function in members("triton.language"):
        return UnknownName.OF_TL(where=where, name=name, function=function)
    if hasattr(builtins, name):
        return UnknownName.BUILTIN(where=where, name=name)
    if name in members("triton.language"):
        return UnknownName.MISSPELT(where=where, name=name, near=f"tl.{name}")
    if near := _near(name, sorted(own)):
        return UnknownName.MISSPELT(where=where, name=name, near=near)
    return UnknownName.NOT_DEFINED(where=where, name=name)


def _is_of(call: ast.Call, module: str) -> bool:
    """Returns whether a call is one such as np.sqrt(x), of the name before its dot."""
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == module


def _has_values(call: ast.Call, around: list[ast.FunctionDef]) -> bool:
    """Returns whether an argument of a call in a kernel is made of the kernel's values: of its variables, or of what tl
    computes, and not of numbers and constants alone."""
    parts = [part for argument in call.args for part in ast.walk(argument)]
    variables = _bound(node for one in around for node in ast.walk(one) if not isinstance(node, ast.arg))
    return any(isinstance(one, ast.Call) or getattr(one, "id", "") in variables for one in parts)


def _changed_first(kernel: ast.FunctionDef, name: str, line: int) -> str:
    """Returns the operator, "+=", if this and all other assignments to the name only change its value; else ""."""
    stored = [n for n in ast.walk(kernel) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    changes = [n for n in ast.walk(kernel) if isinstance(n, ast.AugAssign) and getattr(n.target, "id", "") == name]
    here = [change for change in changes if change.lineno == line]
    operator = OPERATORS.get(type(here[0].op), "") if here and len(stored) == len(changes) else ""
    return f"{operator}=" if operator else ""


def _near(name: str, known: list[str]) -> str:
    """Returns the known name with the closest spelling, as N for n and BLOCK_N for BLOCK; "" if none is close."""
    same = [one for one in known if one.lower() == name.lower()]
    return next(iter(same or difflib.get_close_matches(name, known, 1, NEARLY)), "")


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that the nodes bind: parameters, variables, functions, classes and imports."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
    return found
