"""Explains a result that depends on what the language leaves open, as the order in which tl.cat joins two tiles."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import Evidence
from grader.explain.verdict import Verdict, failed
from grader.sentences import Sentence
from grader.wire.messages import LeftOpen, OpenKind


class Open(Sentence):
    ADDRESS = (
        "Line {line} makes a number of an address, and the result depends on where tensors lie: in the next call they "
        "lie elsewhere."
    )
    CAT = "Line {line} depends on the order of tl.cat, which promises none: tl.join and a reshape keep one."
    COMBINATION = (
        "The function that line {line} combines elements with gives another result in another order, and a GPU has its "
        "own: f(f(a, b), c) has to be f(a, f(b, c)), and for a reduction f(a, b) f(b, a)."
    )
    CONTRACTION = (
        "Line {line} adds to a product. The compiler may round a * b + c once, and with one rounding the result is "
        "wrong: enable_fp_fusion=False at the launch forbids it."
    )
    DIVISION = (
        "Line {line} divides a whole number by 0, and the result depends on the quotient, which is another on a GPU: "
        "all its bits are set there."
    )
    RESHAPE = (
        "Line {line} depends on the order of the elements after a reshape that may exchange them, as tl.view, tl.ravel "
        "and can_reorder=True do: tl.reshape keeps their order."
    )


def depends(evidence: Evidence, one: LeftOpen) -> Verdict:
    """Returns the verdict on a result that another outcome of these operations makes wrong."""
    said = Open[OpenKind(one.kind).name](line=one.line)
    return failed(Cause.LEFT_OPEN, said, evidence.source_line(one.line), kind="open", line=one.line)
