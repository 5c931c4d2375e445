"""Explains promises that a kernel makes to the compiler and does not keep, as by tl.assume."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import Evidence
from grader.explain.verdict import Verdict, failed
from grader.sentences import Said, Sentence
from grader.submission.text import calls_of
from grader.wire.messages import ASSUME, COUNTER, GATHER, MAX_CONSTANCY, MAX_CONTIGUOUS, MULTIPLE_OF, UNALIGNED
from grader.wire.reply import BrokenPromise


class Promise(Sentence):
    """Sentences about a promise that does not hold, and about its consequences."""

    ASSUME = "tl.assume in line {line} promises what does not hold for program {program}: the condition is false there."
    MULTIPLE_OF = (
        "tl.multiple_of in line {line} promises what does not hold for program {program}: the values are no multiples "
        "of that number there."
    )
    MAX_CONTIGUOUS = (
        "tl.max_contiguous in line {line} promises what does not hold for program {program}: the values do not follow "
        "each other by one in runs of that length there."
    )
    MAX_CONSTANCY = (
        "tl.max_constancy in line {line} promises what does not hold for program {program}: the values are not equal "
        "in runs of that length there."
    )
    UNALIGNED = (
        "tl.max_contiguous in line {line} promises what does not hold for program {program}: the values begin again in "
        "the middle of a run, and go on from places that are not the promised multiples."
    )
    GATHER = (
        "tl.gather in line {line} gets an index outside of the tile for program {program}: what it reads there is no "
        "element, and a GPU may end the kernel. Put where() around the index, in lanes that are masked too."
    )
    COUNTER = (
        "The counter of the loop in line {line} leaves its type for program {program}: behind 2147483647 comes "
        "-2147483648, which is less than the end, and the loop goes on. Let it count in 64 bits, or by blocks."
    )
    ENDS_THE_KERNEL = (
        "Where neighbours lie side by side in memory, a thread that believes it moves several at once, from an address "
        "that is no multiple of their bytes: that ends the kernel. Values that are clamped to 0 do no such harm."
    )
    OTHER = "{function} in line {line} promises what does not hold for program {program}: it is false there."
    CHANGES = "Where a compiled kernel believes it, {element} changes."
    IS_BELIEVED = (
        "The compiler believes it: with wide loads or folded conditions a GPU then reads and writes other places."
    )


SENTENCES = {
    ASSUME: Promise.ASSUME,
    MULTIPLE_OF: Promise.MULTIPLE_OF,
    MAX_CONTIGUOUS: Promise.MAX_CONTIGUOUS,
    MAX_CONSTANCY: Promise.MAX_CONSTANCY,
    GATHER: Promise.GATHER,
    COUNTER: Promise.COUNTER,
    UNALIGNED: Promise.UNALIGNED,
}


def broken(evidence: Evidence, promise: BrokenPromise, changed: str = "") -> Verdict:
    """Returns the verdict on a promise that does not hold: the compiler builds on it, so right values are luck.

    changed: the first element that changes where the promise is believed, "z[3, 4]"; "" if none is known.
    """
    line, program = _line_of(evidence, promise), tuple(promise.program)
    if promise.what in SENTENCES:
        sentence = SENTENCES[promise.what](line=line, program=program)
    else:
        sentence = Promise.OTHER(function=promise.what, line=line, program=program)
    why: Said | None = Promise.CHANGES(element=changed) if changed else Promise.IS_BELIEVED()
    if promise.what == UNALIGNED:
        why = Promise.ENDS_THE_KERNEL()
    elif promise.what in (GATHER, COUNTER):
        why = None
    return failed(Cause.FALSE_PROMISE, sentence, why, evidence.source_line(line), kind="cause", line=line)


def harmless(evidence: Evidence, promise: BrokenPromise) -> str:
    """Returns the report's note about a promise that does not hold and changes nothing."""
    return f"the hint in line {_line_of(evidence, promise)} is false where nothing is stored"


def _line_of(evidence: Evidence, promise: BrokenPromise) -> int:
    """Returns the line of the call that makes the promise: the first from `promise.line` on, which is the line of the
    promised value in the compiler's text."""
    lines = calls_of(evidence.submission.tree, promise.what.rpartition(".")[2])
    after = [line for line in lines if line >= promise.line]
    return min(after, default=promise.line)
