"""Explains results that depend on the order of a program's warps, as after an update in place."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import source_line
from grader.explain.verdict import Verdict, failed
from grader.gpu.warp_order import Conflict
from grader.sentences import Sentence
from grader.submission.text import Submission
from grader.wire.messages import Meeting


class WarpOrder(Sentence):
    LOADS_FIRST = (
        "What {kernel} computes depends on the order of its warps: line {load} loads {name}, line {store} stores to "
        "the same elements, and nothing makes the warps wait in between."
    )
    STORES_FIRST = (
        "What {kernel} computes depends on the order of its warps: line {store} stores {name}, line {load} loads the "
        "same elements, and nothing makes the warps wait in between."
    )
    COPIES_LOST = (
        "Line {load} loads a tile of {elements:#element}, each by {copies:#warp}, and one of them stores it: it may do "
        "so before another has loaded. Take fewer warps, or a tile of at least {threads} elements, or "
        "write tl.debug_barrier() between the two lines."
    )
    COPIES_EARLY = (
        "Line {load} loads a tile of {elements:#element}, each by {copies:#warp}, and one of them has stored it: "
        "another may load before that. Keep the values in a variable, or write tl.debug_barrier() between "
        "the two lines."
    )
    OTHERS_LOST = (
        "One warp stores an element that another loads, and may do so before. Store to other memory than you load "
        "from, or write tl.debug_barrier() between the two lines."
    )
    OTHERS_EARLY = (
        "One warp stores an element that another loads, and may store it only after that. Keep the values in a "
        "variable, or write tl.debug_barrier() between the two lines."
    )


def in_any_order(submission: Submission, kernel: str, meeting: Meeting, conflict: Conflict) -> Verdict:
    load, store = meeting.load.line, meeting.store.line
    where = WarpOrder.LOADS_FIRST if meeting.loads_first else WarpOrder.STORES_FIRST
    said = where(kernel=kernel, name=meeting.argument, load=load, store=store)
    if conflict.copies > 1:
        copies = dict(elements=conflict.elements, copies=conflict.copies, load=load)
        if meeting.loads_first:
            why = WarpOrder.COPIES_LOST(**copies, threads=conflict.threads)
        else:
            why = WarpOrder.COPIES_EARLY(**copies)
    else:
        why = WarpOrder.OTHERS_LOST() if meeting.loads_first else WarpOrder.OTHERS_EARLY()
    line = store if meeting.loads_first else load
    # The kind is "values", after "memory": a race between programs is more direct, and may be the reason for this.
    return failed(Cause.WARP_ORDER, said, why, source_line(submission, line), kind="values", line=line)
