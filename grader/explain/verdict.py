"""The outcome of one test and the words that explain it. Plain data: the plugin shows it, `--result` stores it."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.explain.causes import is_cause
from grader.explain.tile_map import TileMap
from grader.sentences import Said
from grader.wire.printable import one_line

PASS, FAIL, NOT_ATTEMPTED, SKIPPED = "pass", "fail", "not attempted", "skipped"
# Ids of a skip: values are wrong; the machine cannot judge this; it is too noisy to judge a speed now; the call does
# what no small call does, and the machine cannot judge that.
WAITED, NOT_RUN, INCONCLUSIVE, UNJUDGED = "waited", "not-run", "inconclusive", "unjudged"
INCOMPLETE = "incomplete"  # of an exercise: nothing failed, but not every test was run, or judged

# Of several failures in one run the one with the most direct cause is explained: the first kind in this list.
DIRECTNESS = ("file", "region", "ended", "error", "refused", "result", "cause", "memory", "guess", "values", "cost")

# Wrong values are ORDINARY where some should be ordinary numbers, SPECIAL where all involve NaN or infinities.
WRONG_IN = ORDINARY, SPECIAL = "ordinary", "special"


@dataclass
class Verdict:
    """`id` names the kind of mistake for machines, a cause where something failed; what is `said` of it has the mistake
    first."""

    outcome: str
    id: str = ""
    said: list[Said] = field(default_factory=list)
    kind: str = "values"  # of DIRECTNESS
    line: int = 0  # in the learner's file: where to look next
    note: str = ""  # beside the test's name: what was judged, or how well it went
    sampled: bool = False  # a few programs of a large call show it: what a small call shows says more
    wrong: str = ""  # of WRONG_IN, where values were compared and differ
    case: str = ""  # a failed call in full: shapes, layouts, dtype, block sizes
    tiles: TileMap | None = None  # which program wrote what, and which tiles are right
    figures: dict[str, float] = field(default_factory=dict)  # what was measured, by name

    def __post_init__(self) -> None:
        if self.outcome == FAIL and not is_cause(self.id):
            raise ValueError(f"{self.id!r} is the id of no failure: explain/causes.py, an operation's CAUSES.")

    @property
    def lines(self) -> list[str]:
        """What is said, in words: the one place where evidence becomes text, which may be a learner's."""
        return [one_line(one.text) for one in self.said]

    @property
    def rank(self) -> int:
        return DIRECTNESS.index(self.kind)


def failed(id: str, *said: Said | None, kind: str = "values", line: int = 0) -> Verdict:
    """None: nothing is said in this place. Raises TypeError for words that stand in no table."""
    if any(one is not None and not isinstance(one, Said) for one in said):
        raise TypeError(f"{id}: {said}")
    return Verdict(FAIL, id, [one for one in said if one], kind, line)
