"""What the text of a wrong submission, or the calls before, tell of its failure: said in front of what was seen."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.verdict import Verdict
from grader.sentences import Sentence


class Blame(Sentence):
    EMPTY_REGION = "The marked region in {functions} is still empty."
    A_NUMBER = (
        "Right with your own block sizes, wrong with {sizes:,}: does a number, or another name, stand where one of "
        "them should?"
    )
    IS_IT = "Is it the {number} in line {line}?"


def blame_empty_regions(verdict: Verdict, functions: list[str]) -> None:
    verdict.said.insert(0, Blame.EMPTY_REGION(functions=" and ".join(functions)))
    verdict.kind = "region"


def blame_a_number(verdict: Verdict, constants: dict[str, int], literals: list[tuple[int, int]]) -> None:
    """Says that these block sizes make it go wrong, and asks for the usual reason: numbers in their place.

    literals: numbers in kernels that are the file's own block sizes, each with its line. What was said of a grid that
    leaves elements out is no longer said: it may be right.
    """
    if verdict.id == Cause.UNWRITTEN and len(verdict.said) > 1:
        del verdict.said[0]
    if len(literals) == 1:
        ((number, verdict.line),) = literals
        verdict.said.insert(0, Blame.IS_IT(number=number, line=verdict.line))
    verdict.said.insert(0, Blame.A_NUMBER(sizes=[f"{name} = {value}" for name, value in constants.items()]))
    verdict.kind = "cause"
