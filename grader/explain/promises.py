"""Promises that a kernel makes to the compiler and does not keep."""

from __future__ import annotations

from grader.explain.evidence import Evidence, program_text
from grader.reply import BrokenPromise
from grader.verdict import Verdict, failed

MEANINGS = {
    "tl.assume": "the condition is false there",
    "tl.multiple_of": "the values are no multiples of that number there",
    "tl.max_contiguous": "the values do not follow each other by one in runs of that length there",
    "tl.max_constancy": "the values are not equal in runs of that length there",
}


def broken(evidence: Evidence, promise: BrokenPromise) -> Verdict:
    """The compiler believes a promise and builds on it: right values are luck then."""
    sentence = (
        f"{promise.what} in line {promise.line} promises what does not hold for {program_text(promise.program)}: "
        f"{MEANINGS.get(promise.what, 'it is false there')}."
    )
    why = "The compiler believes it: with wide loads or folded conditions a GPU then reads and writes other places."
    return failed(
        "false-promise", sentence, why, evidence.source_line(promise.line), kind="cause", line=promise.line
    )  # fmt: skip
