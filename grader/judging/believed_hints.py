"""Hints that do not hold, and the results that change where a compiled kernel believes them.

tl.max_contiguous(x, 64) lets one thread load several neighbours at once, from the address of the first. If x is clamped
at the end of a matrix, as by tl.where(x < M, x, 0), the hint is false for lanes past the end. These lanes then load
other elements, and nothing of them is stored: many kernels hold hints of this kind, and they are no mistake. With x % M
later groups of neighbours begin at odd offsets, and a wide load there ends with a misaligned address: so on an H100
where columns begin at multiples of 16 bytes (fp16, M = 71, columns 80 apart: loads of 16 bytes). Where they do not
(71 apart: loads of 2 bytes), nothing tells the compiler that neighbours begin at multiples: no load is wide, and that
hint is no mistake either.
"""

from __future__ import annotations

from collections.abc import Callable

from grader.explain.broken_promises import broken, harmless
from grader.explain.evidence import Evidence
from grader.explain.verdict import Verdict
from grader.numerics.comparison import bits_of, other_bits
from grader.wire.messages import MAX_CONTIGUOUS, UNALIGNED
from grader.wire.reply import Reply, WideAccess

OF_ONE_ACCESS = (MAX_CONTIGUOUS, UNALIGNED)  # promises with a known meaning for a single access of a thread
OF_LOADS = ("out-of-bounds-load", "wild-pointer", "uninitialised-read")  # kinds of findings


def broken_promise(evidence: Evidence, believing: Callable[[], Reply]) -> tuple[Verdict | None, str]:
    """Returns the verdict on a call that breaks promises, or None and a note for its report.

    believing: interprets the call once more, with values as they are promised, and returns the reply.
    """
    promises = evidence.reply.broken
    others = [promise for promise in promises if promise.what not in OF_ONE_ACCESS]
    if others:
        return broken(evidence, others[0]), ""
    reply = believing()
    unaligned = next((promise for promise in promises if promise.what == UNALIGNED), None)
    if unaligned is not None and _has_misaligned_access(evidence.reply.wide, reply.wide):
        return broken(evidence, unaligned), ""
    changed = _first_changed(evidence.reply, reply)
    if changed is None:
        return None, harmless(evidence, promises[0])
    return broken(evidence, promises[0], changed), ""


def _has_misaligned_access(first: list[WideAccess], believed: list[WideAccess]) -> bool:
    """Returns whether an access may be so wide where promises are believed that it is misaligned in truth."""
    possible: dict[tuple[int, ...], int] = {}
    for wide in believed:
        key = tuple(wide.access)
        possible[key] = possible.get(key, wide.possible) & wide.possible
    return any(possible.get(tuple(wide.access), 0) & wide.misaligned for wide in first)


def _first_changed(first: Reply, believed: Reply) -> str | None:
    """Returns the first element that differs, "z[3, 4]"; "" for another difference; None where there is none.

    An invalid load that believing causes does not count: a thread that loads several bytes at once begins at a multiple
    of their number, next to an element that exists. A store to a wrong address shows as a missing element of the
    result.
    """
    if believed.error is not None or any(finding.kind not in OF_LOADS for finding in believed.findings):
        return ""
    for name, out in first.outputs.items():
        other = believed.outputs.get(name)
        if other is None or (other.shape, other.dtype) != (out.shape, out.dtype):
            return ""
        if out.device.type != "meta" and (differing := other_bits(out, other)).any():
            return f"{name}{differing.nonzero()[0].tolist()}"
    return None if _stored(first) == _stored(believed) else ""


def _stored(reply: Reply) -> list[tuple[list[int], list[int]]]:
    """Returns what the programs of a sample stored, by result: offsets in elements, and values as bits."""
    return [(result.offsets.tolist(), bits_of(result.values).tolist()) for result in reply.sampled]
