"""Puts a likely cause first in a verdict: an empty region, or a number that is written instead of a block size."""

from __future__ import annotations

import ast

from grader.explain.causes import Cause
from grader.explain.unwritten import Unwritten
from grader.explain.verdict import Verdict
from grader.sentences import Sentence


class Blame(Sentence):
    EMPTY_REGION = "The marked region in {functions} is still empty."
    A_NUMBER = (
        "Right with the block sizes of the file, wrong with {sizes:,}: does a number, or another name, stand where one "
        "of them should?"
    )
    IS_IT = "Is it the {number} in line {line}?"


def blame_empty_regions(verdict: Verdict, functions: list[str], tree: ast.Module) -> None:
    verdict.said.insert(0, Blame.EMPTY_REGION(functions=" and ".join(functions)))
    verdict.kind, verdict.line = "region", _line_of_region(functions[0], tree)


def _line_of_region(function: str, tree: ast.Module) -> int:
    """Returns the line of the `pass` that the stub has there, or else of the function; 0 without such a function."""
    found = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function), None)
    if found is None:
        return 0
    return next((node.lineno for node in ast.walk(found) if isinstance(node, ast.Pass)), found.lineno)


def blame_a_number(verdict: Verdict, constants: dict[str, int], literals: list[tuple[int, int]]) -> None:
    """Says that the call is right with the file's own block sizes and wrong with `constants`, and asks whether a
    kernel holds a number where the name of a block size should stand.

    literals: (number, line) for each number in kernels that equals a block size of the file that `constants` replaces.
    If elements are unwritten, what blames the grid for it is dropped: the grid may be right.
    """
    if verdict.id == Cause.UNWRITTEN:
        verdict.said[:] = [one for one in verdict.said if one.sentence is Unwritten.COUNT]
        verdict.line = 0
    if len(set(literals)) == 1:
        number, verdict.line = literals[0]
        verdict.said.insert(0, Blame.IS_IT(number=number, line=verdict.line))
    verdict.said.insert(0, Blame.A_NUMBER(sizes=[f"{name} = {value}" for name, value in constants.items()]))
    verdict.kind = "cause"
