"""The outcome of one test and the words that explain it. Plain data: the plugin shows it, `--result` stores it."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.explain.causes import is_cause
from grader.explain.tile_map import TileMap

PASS, FAIL, NOT_ATTEMPTED, SKIPPED = "pass", "fail", "not attempted", "skipped"
# Ids of a skip: values are wrong; the machine cannot judge this; it is too noisy to judge a speed now.
WAITED, NOT_RUN, INCONCLUSIVE = "waited", "not-run", "inconclusive"
INCOMPLETE = "incomplete"  # of an exercise: nothing failed, but not every test was run

# Of several failures in one run the one with the most direct cause is explained: the first kind in this list.
DIRECTNESS = ("file", "region", "ended", "error", "refused", "result", "cause", "memory", "guess", "values", "cost")


@dataclass
class Verdict:
    """`id` names the kind of mistake for machines, a cause where something failed; `lines` tell it to the learner,
    the mistake first."""

    outcome: str
    id: str = ""
    lines: list[str] = field(default_factory=list)
    kind: str = "values"  # of DIRECTNESS
    line: int = 0  # in the learner's file: where to look next
    note: str = ""  # beside the test's name: what was judged, or how well it went
    case: str = ""  # a failed call in full: shapes, layouts, dtype, block sizes
    tiles: TileMap | None = None  # which program wrote what, and which tiles are right
    figures: dict[str, float] = field(default_factory=dict)  # what was measured, by name

    def __post_init__(self) -> None:
        if self.outcome == FAIL and not is_cause(self.id):
            raise ValueError(f"{self.id!r} is the id of no failure: explain/causes.py, an operation's CAUSES.")

    @property
    def rank(self) -> int:
        return DIRECTNESS.index(self.kind)


def failed(id: str, *lines: str, kind: str = "values", line: int = 0) -> Verdict:
    return Verdict(FAIL, id, [text for text in lines if text], kind, line)
