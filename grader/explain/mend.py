"""Tells the line in which one change makes every wrong call right: where a mistake is that nobody foresaw.

A report tells no more than the line and the kind of the change. What the change is, `course mend` tells.
"""

from __future__ import annotations

from collections.abc import Collection

from grader.explain.evidence import source_line
from grader.explain.verdict import FAIL, Verdict
from grader.sentences import Said, Sentence
from grader.submission.text import Submission

KINDS = ("memory", "guess", "values")  # of verdicts that say what was seen, and not where it comes from
# A report names an edit by its kind, and never says what the edit is.
CHANGES = {
    "comparison": "another comparison", "axis": "another axis", "operation": "another operation",
    "order": "another order of operands or operations", "exchange": "two values exchanged",
    "number": "another number", "mask": "a mask", "other": "an `other`",
    "less": "one operation less", "value": "another value", "more": "one operation more",
    "grid": "another grid", "argument": "other arguments of the kernel",
}  # fmt: skip


class MendedLine(Sentence):
    LINE = "With {change} in line {line}, {calls} of {of} wrong calls come out right{aside}."
    ALL = "With {change} in line {line}, every wrong call that was tried comes out right{aside}."


def is_mended(verdict: Verdict) -> bool:
    """Returns whether the verdict's line is that of a mend: where a mistake was made, and not where it shows."""
    return any(isinstance(one.sentence, MendedLine) for one in verdict.said)


def is_of_values(verdict: Verdict) -> bool:
    """Returns whether a call was carried out in full, and came out wrong: nothing else can be mended."""
    return verdict.kind in (*KINDS, "cause") and not verdict.sampled


def is_asked_for(verdict: Verdict) -> bool:
    """Returns whether a mend would say more than the verdict does."""
    return verdict.outcome == FAIL and (verdict.kind in KINDS or verdict.kind == "cause" and not verdict.line)


def told(edits: Collection[str], line: int, calls: int, of: int, rounds: bool, submission: Submission) -> list[str]:
    """Returns the line as it stands, and what each of these edits in it does. `rounds`: as of add_to."""
    quoted = source_line(submission, line)
    said = [_said(edit, line, calls, of, rounds).text for edit in edits]
    return [*([quoted.text] if quoted is not None else []), *said]


def _said(change: str, line: int, calls: int, of: int, rounds: bool) -> Said:
    aside = ", rounding aside" if rounds else ""
    if calls == of:
        return MendedLine.ALL(change=change, line=line, aside=aside)
    return MendedLine.LINE(change=change, line=line, calls=calls, of=of, aside=aside)


def add_to(verdict: Verdict, line: int, kinds: Collection[str], calls: int, of: int, rounds: bool,
           submission: Submission) -> None:  # fmt: skip
    """Adds the line of a mend to a verdict. `kinds`: of the edits that mend. `calls`: how many come right, of how many
    that were tried. `rounds`: whether a right kernel rounds anything in these calls."""
    said = _said(CHANGES[next(iter(kinds))] if len(kinds) == 1 else "a change", line, calls, of, rounds)
    quoted = source_line(submission, line)
    verdict.said += [said, *([quoted] if quoted is not None and quoted not in verdict.said else [])]
    verdict.line = line
