"""Tells the line in which one change makes every wrong call right: where a mistake is that nobody foresaw."""

from __future__ import annotations

from collections.abc import Collection

from grader.explain.verdict import FAIL, Verdict
from grader.operations.evidence import source_line
from grader.sentences import Sentence
from grader.submission.text import Submission

KINDS = ("memory", "guess", "values")  # of verdicts that say what was seen, and not where it comes from
# These words name an edit by its kind, and never say what the edit is.
CHANGES = {
    "comparison": "another comparison", "axis": "another axis", "operation": "another operation",
    "order": "another order of its operands", "number": "another number", "mask": "a mask", "other": "an `other`",
    "less": "one operation less", "value": "another value", "more": "one operation more",
    "grid": "another grid", "argument": "other arguments of the kernel",
}  # fmt: skip


class MendedLine(Sentence):
    LINE = "With {change} in line {line}, {calls} of {of} wrong calls come out right, rounding aside."
    ALL = "With {change} in line {line}, every wrong call that was tried comes out right, rounding aside."


def is_mended(verdict: Verdict) -> bool:
    """Returns whether the verdict's line is that of a mend: where a mistake was made, and not where it shows."""
    return any(isinstance(one.sentence, MendedLine) for one in verdict.said)


def is_of_values(verdict: Verdict) -> bool:
    """Returns whether a call was carried out in full, and came out wrong: nothing else can be mended."""
    return verdict.kind in (*KINDS, "cause") and not verdict.sampled


def is_asked_for(verdict: Verdict) -> bool:
    """Returns whether a mend would say more than the verdict does."""
    return verdict.outcome == FAIL and (verdict.kind in KINDS or verdict.kind == "cause" and not verdict.line)


def add_to(verdict: Verdict, line: int, kinds: Collection[str], calls: int, of: int, submission: Submission) -> None:
    """Adds the line of a mend to a verdict. `kinds`: of the edits that mend. `calls`: how many come right, of how many
    that were tried."""
    change = CHANGES[next(iter(kinds))] if len(kinds) == 1 else "a change"
    if calls == of:
        said = [MendedLine.ALL(change=change, line=line)]
    else:
        said = [MendedLine.LINE(change=change, line=line, calls=calls, of=of)]
    quoted = source_line(submission, line)
    verdict.said += [*said, *([quoted] if quoted is not None and quoted not in verdict.said else [])]
    verdict.line = line
