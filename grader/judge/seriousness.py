"""The order of verdicts: which of several counts."""

from __future__ import annotations

from grader.explain.verdict import PASS, SKIPPED, UNJUDGED, Verdict


def all_right(calls: int, largest: float) -> Verdict:
    """Returns the pass of this number of drawn calls. largest: their largest error, as a share of its bound."""
    note = f"{calls} calls" + (f", largest error {largest:.2f} of the bound" if largest else "")
    return Verdict(PASS, note=note, figures={"largest_error": largest})


def is_no_pass(verdict: Verdict) -> bool:
    return verdict.outcome != PASS


def seriousness(verdict: Verdict) -> tuple[bool, float]:
    """Returns a key for max(): no pass, then the pass whose largest error comes nearest to its bound."""
    return is_no_pass(verdict), verdict.figures.get("largest_error", 0)


def openness(verdict: Verdict) -> tuple[bool, bool]:
    """Returns a key for max() over samples of one call: a failure, then the skip that leaves the run incomplete."""
    return verdict.outcome != SKIPPED, verdict.id == UNJUDGED
