"""Defines the verdict on a test: its outcome, and the words that explain it. The plugin shows and stores it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.explain.causes import Cause
from grader.explain.tile_map import TileMap
from grader.sentences import Said
from grader.wire.printable import one_line

PASS, FAIL, NOT_ATTEMPTED, SKIPPED = "pass", "fail", "not attempted", "skipped"
# Ids of a skip, in this order: values are wrong; the machine cannot judge this; it is too noisy to judge a speed now;
# the call launches kernels that no small call launches, and the machine cannot judge them.
WAITED, NOT_RUN, INCONCLUSIVE, UNJUDGED = "waited", "not-run", "inconclusive", "unjudged"
INCOMPLETE = "incomplete"  # outcome of an exercise: nothing failed, but not every test was run, or judged

# Kinds of failures, from the most direct cause on. A run explains its failure of the most direct kind. What is wrong in
# the usual run says more than what is wrong only where the language leaves a result open.
DIRECTNESS = (
    "file", "region", "ended", "operator", "error", "refused", "result", "cause", "memory", "guess", "values", "open",
    "cost",
)  # fmt: skip

BY_NO_CHANCE = 3  # calls that an explanation fits

# Wrong values are ORDINARY if some of them should be ordinary numbers, SPECIAL if all involve NaN or infinities.
WRONG_IN = ORDINARY, SPECIAL = "ordinary", "special"


@dataclass
class Verdict:
    """The outcome of a test. id: a cause for a failure, or an id of a skip. said: sentences, the mistake first."""

    outcome: str
    id: str = ""
    said: list[Said] = field(default_factory=list)
    kind: str = "values"  # one of DIRECTNESS
    line: int = 0  # in the learner's file: where to look next
    note: str = ""  # printed after the test's name: what was judged, or how well it went
    sampled: bool = False  # a few programs of a large call show it; a failure of a small call says more
    wrong: str = ""  # one of WRONG_IN if values were compared and differ
    candidate: str = ""  # what explains wrong values: the id of its sentence; "" where they are told and not explained
    fitting: dict[str, Said] = field(default_factory=dict)  # all candidates that explain this call, and what they say
    refuted: frozenset[str] = frozenset()  # candidates that would give other values in this call
    case: str = ""  # a failed call in full: shapes, layouts, dtype, block sizes
    tiles: TileMap | None = None  # which program wrote what, and which tiles are right
    figures: dict[str, float] = field(default_factory=dict)  # measured numbers, by name

    @property
    def lines(self) -> list[str]:
        """Returns the sentences as text, made printable here, as their evidence may hold a learner's text."""
        return [one_line(one.text) for one in self.said]

    @property
    def rank(self) -> int:
        return DIRECTNESS.index(self.kind)


def is_contradicted(verdict: Verdict, others: Iterable[Verdict]) -> bool:
    """Returns whether the explanation of one failing call does not hold for the other failing calls of a run.

    It fits by chance where most of them would have other values by it; if it fits few calls, also where most are wrong
    in ordinary numbers that nothing explains. One that no call contradicts is better, if it fits as many. A single
    call whose formula is wrong contradicts that digits are lost.
    """
    wrong = [one for one in others if one.wrong == ORDINARY]
    if not verdict.candidate:
        return False
    if verdict.candidate == Cause.LOW_PRECISION:
        return refutes(verdict.candidate, wrong) > 0
    fitting = 1 + fits(verdict.candidate, wrong)
    refuting = refutes(verdict.candidate, wrong)
    if fitting < BY_NO_CHANCE:
        unexplained = [one for one in wrong if one.kind == "values" and verdict.candidate not in one.refuted]
        refuting += len(unexplained)
    rivals = {one.candidate for one in wrong if one.candidate and not refutes(one.candidate, [verdict, *wrong])}
    better = bool(refuting) and any(fits(one, [verdict, *wrong]) >= fitting for one in rivals)
    return refuting > fitting or better


def fits(candidate: str, verdicts: Iterable[Verdict]) -> int:
    """Returns how many failing calls a candidate explains."""
    return sum(candidate in one.fitting for one in verdicts)


def refutes(candidate: str, verdicts: Iterable[Verdict]) -> int:
    """Returns how many failing calls have other values than a candidate gives."""
    return sum(candidate in one.refuted for one in verdicts)


def failed(id: str, *said: Said | None, kind: str = "values", line: int = 0) -> Verdict:
    """Returns a failure with the sentences that are not None. Raises TypeError for words that stand in no table."""
    if any(one is not None and not isinstance(one, Said) for one in said):
        raise TypeError(f"{id}: {said}")
    return Verdict(FAIL, id, [one for one in said if one], kind, line)
