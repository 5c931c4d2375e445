"""Offsets that their type does not hold: they lead elsewhere, and what is seen there is only the consequence."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import Evidence, program_text
from grader.explain.verdict import Verdict, failed

LARGEST = {"int8": "2**7 - 1 = 127", "int16": "2**15 - 1 = 32767", "int32": "2**31 - 1 = 2147483647"}
EXACT_UP_TO = {"fp16": "2048", "bfloat16": "256", "fp32": "2**24 = 16777216"}


def overflow(evidence: Evidence, seen: Verdict) -> Verdict | None:
    """In place of `seen`, what went wrong, where a number on the way to an address left what its type holds."""
    if not evidence.reply.overflows or seen.kind not in ("memory", "values", "guess"):
        return None
    first = min(evidence.reply.overflows, key=lambda one: one.dtype == "int32")
    who, what = program_text(first.program), first.dtype
    if what in LARGEST:
        sentence = (
            f"An offset leaves {what} in line {first.line}: its largest number is {LARGEST[what]}, and {who} goes "
            "past it, to a negative one."
        )
        next_step = "Give tl.program_id, or what is multiplied, .to(tl.int64) before the product."
        if what != "int32":
            next_step = "Leave offsets in the int32 that tl.program_id and tl.arange give."
    else:
        limit = EXACT_UP_TO.get(what, "a few digits")
        sentence = (
            f"An offset is rounded in line {first.line}: {what} holds every whole number up to {limit} only, and "
            f"{who} goes past it."
        )
        next_step = "Compute offsets in integers: tl.program_id and tl.arange give int32."
    shown = seen.said[1:2] if seen.kind == "memory" else seen.said[-1:]
    return failed(
        Cause.OFFSET_OVERFLOW, sentence, *shown, next_step, evidence.source_line(first.line), kind="cause",
        line=first.line,
    )  # fmt: skip
