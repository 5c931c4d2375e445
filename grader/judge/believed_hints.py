"""Hints that do not hold: what changes where a compiled kernel believes them.

tl.max_contiguous(x, 64) lets one thread load several neighbours at once, from the address of the first. Where x is
clamped at the end of a matrix, as tl.where(x < M, x, 0), the hint is false for lanes that are past the end. They load
something else then, and nothing of it is stored: such hints stand in many kernels, and are no mistake. With x % M they
are: later groups of neighbours begin at odd places, and a wide load ends there with a misaligned address (H100, Triton
3.6, fp16, M = 71, a stored column by column).
"""

from __future__ import annotations

from collections.abc import Callable

from grader.explain.broken_promises import broken, harmless
from grader.explain.evidence import Evidence
from grader.explain.verdict import Verdict
from grader.operations.comparison import bits_of, other_bits
from grader.wire.messages import MAX_CONTIGUOUS
from grader.wire.reply import Reply

OF_LOADS = ("out-of-bounds-load", "wild-pointer", "uninitialised-read")  # findings


def broken_promise(evidence: Evidence, believing: Callable[[], Reply]) -> tuple[Verdict | None, str]:
    """Returns the verdict on a call that breaks promises, or None and a note for its report.

    believing: carries out the call once more, with values as they are promised.
    """
    promises = evidence.reply.broken
    others = [
        promise for promise in promises if promise.what != MAX_CONTIGUOUS
    ]  # its meaning for a single access is known
    if others:
        return broken(evidence, others[0]), ""
    changed = _first_changed(evidence.reply, believing())
    if changed is None:
        return None, harmless(evidence, promises[0])
    return broken(evidence, promises[0], changed), ""


def _first_changed(first: Reply, believed: Reply) -> str | None:
    """Returns the first element that differs, "z[3, 4]"; "" for another difference; None where there is none.

    A load that believing leads out of bounds does not count: a thread that loads several bytes at once begins at a
    multiple of their number, next to an element that is there. A store that is led away is missing in the result.
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
    """Returns where the programs of a sample have stored, and what, as bits."""
    return [(one.offsets.tolist(), bits_of(one.values).tolist()) for one in reply.sampled]
