"""Loads with a mask and without `other`, where what masked lanes hold reaches a result."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import Compared
from grader.explain.values import first_wrong
from grader.explain.verdict import Verdict, failed
from grader.explain.written_tiles import tile_map
from grader.sentences import Sentence


class MaskedLane(Sentence):
    NO_OTHER = (
        "The load in line {line} has a mask but no `other`: what masked lanes hold is undefined, and here it reaches "
        "{name}."
    )


def no_other(evidence: Compared, line: int) -> Verdict:
    """`line`: of the load."""
    verdict = failed(
        Cause.NO_OTHER,
        MaskedLane.NO_OTHER(line=line, name=evidence.returns),
        evidence.source_line(line),
        None if evidence.comparison.right else first_wrong(evidence),
        kind="memory",
        line=line,
    )
    verdict.tiles = tile_map(evidence)
    return verdict
