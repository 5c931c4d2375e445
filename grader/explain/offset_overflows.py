"""Explains offsets that their type cannot hold: they lead to other elements, and cause the failure seen there."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import Evidence
from grader.explain.verdict import Verdict, failed
from grader.sentences import Fields, Said, Sentence
from grader.wire.reply import Overflow

BITS = {"int8": 7, "int16": 15, "int32": 31}  # the largest number is 2**bits - 1
EXACT_UP_TO = {"fp16": "2048", "bfloat16": "256", "fp32": "2**24 = 16777216"}


class Offset(Sentence):
    """Sentences about the type that cannot hold an offset, and about the type that the offset should have."""

    LEAVES_TYPE = (
        "An offset leaves {dtype} in line {line}: its largest number is 2**{bits} - 1 = {largest}, and program "
        "{program} goes past it, to a negative one."
    )
    ROUNDED = (
        "An offset is rounded in line {line}: {dtype} holds every whole number up to {limit} only, and program "
        "{program} goes past it."
    )
    ADVICE_INT64 = "Convert a factor of that line's product before it is multiplied: the_factor.to(tl.int64)."
    ADVICE_KEEP_INT32 = "Leave offsets in the int32 that tl.program_id and tl.arange give."
    ADVICE_INTEGERS = "Compute offsets in integers: tl.program_id and tl.arange give int32."


def overflow(evidence: Evidence, seen: Verdict) -> Verdict | None:
    """Returns the verdict on a number, computed for an address, that its type cannot hold; else None.

    seen: the verdict to be replaced, of which the sentence that shows where it happens is kept.
    """
    if not evidence.reply.overflows or seen.kind not in ("memory", "values", "guess"):
        return None
    first = min(evidence.reply.overflows, key=lambda one: one.dtype == "int32")
    sentence, next_step = _left(first)
    shown = seen.said[1:2] if seen.kind == "memory" else seen.said[-1:]
    return failed(
        Cause.OFFSET_OVERFLOW, sentence, *shown, next_step, evidence.source_line(first.line), kind="cause",
        line=first.line,
    )  # fmt: skip


def _left(one: Overflow) -> tuple[Said, Said]:
    """Returns the sentence about the type that does not hold the number, and the advice."""
    where: Fields = dict(dtype=one.dtype, line=one.line, program=tuple(one.program))
    if one.dtype not in BITS:
        return Offset.ROUNDED(**where, limit=EXACT_UP_TO.get(one.dtype, "a few digits")), Offset.ADVICE_INTEGERS()
    bits = BITS[one.dtype]
    advice = Offset.ADVICE_INT64() if one.dtype == "int32" else Offset.ADVICE_KEEP_INT32()
    return Offset.LEAVES_TYPE(**where, bits=bits, largest=2**bits - 1), advice
