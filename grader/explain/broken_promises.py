"""Promises that a kernel makes to the compiler and does not keep."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import Evidence, program_text
from grader.explain.verdict import Verdict, failed
from grader.submission.text import calls_of
from grader.wire.reply import BrokenPromise

MEANINGS = {
    "tl.assume": "the condition is false there",
    "tl.multiple_of": "the values are no multiples of that number there",
    "tl.max_contiguous": "the values do not follow each other by one in runs of that length there",
    "tl.max_constancy": "the values are not equal in runs of that length there",
}


def broken(evidence: Evidence, promise: BrokenPromise) -> Verdict:
    """The compiler believes a promise and builds on it: right values are luck then."""
    line = _line_of(evidence, promise)
    sentence = (
        f"{promise.what} in line {line} promises what does not hold for {program_text(promise.program)}: "
        f"{MEANINGS.get(promise.what, 'it is false there')}."
    )
    why = "The compiler believes it: with wide loads or folded conditions a GPU then reads and writes other places."
    return failed(
        Cause.FALSE_PROMISE, sentence, why, evidence.source_line(line), kind="cause", line=line
    )  # fmt: skip


def _line_of(evidence: Evidence, promise: BrokenPromise) -> int:
    """Of the promise: the compiler's text has it where the value is computed that it speaks of."""
    lines = calls_of(evidence.submission.tree, promise.what.removeprefix("tl."))
    return lines[0] if len(lines) == 1 else promise.line
