"""What the text of a wrong submission, or the calls before, tell of its failure: said in front of what was seen."""

from __future__ import annotations

from grader.explain.verdict import Verdict
from grader.sentences import Sentence


class Blame(Sentence):
    EMPTY_REGION = "The marked region in {functions} is still empty."
    A_NUMBER = (
        "Right with your own block sizes, wrong with {sizes:,}: a number, or another name, stands where one of them "
        "should."
    )


def blame_empty_regions(verdict: Verdict, functions: list[str]) -> None:
    verdict.said.insert(0, Blame.EMPTY_REGION(functions=" and ".join(functions)))
    verdict.kind = "region"


def blame_a_number(verdict: Verdict, constants: dict[str, int]) -> None:
    """Block sizes stand in the code as numbers: with these ones it goes wrong."""
    verdict.said.insert(0, Blame.A_NUMBER(sizes=[f"{name} = {value}" for name, value in constants.items()]))
    verdict.kind = "cause"
