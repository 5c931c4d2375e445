"""Calls that tests will ask for, and the order in which to begin with them."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from grader.course.trial import Trial

EARLY = 6  # calls that are asked for first, and as many others: most wrong kernels show in the first test or two


@dataclass
class Foreseen:
    """A recording that a test will ask for."""

    trial: Trial
    if_right: bool = False  # asked for only if all values are right


def in_turns(foreseen: list[Foreseen]) -> list[Foreseen]:
    """Kernels with the file's own block sizes take the compiler longest: they take turns with those that get others.

    The first stays the first: it is asked for at once.
    """
    own = [one for one in foreseen if not one.trial.constants]
    others = [one for one in foreseen if one.trial.constants]
    first, second = (own, others) if foreseen[:1] == own[:1] else (others, own)
    return [one for pair in itertools.zip_longest(first, second) for one in pair if one is not None]


def in_drawn_order(foreseen: list[Foreseen], draw: random.Random) -> list[list[Foreseen]]:
    """Rounds, each in an order that is drawn: a call is in two of them, in the first and second or the third and last.

    What is asked for first is in the first two, among others that are drawn: its verdict need not wait for all. A round
    begins with the call that the one before it ended with: made twice in a row, it gets the same tensors again.
    """
    asked, later = foreseen[:EARLY], foreseen[EARLY:]
    early = asked + draw.sample(later, min(EARLY, len(later)))
    rest = [one for one in later if not any(one is other for other in early)]
    rounds = []
    for calls in (early, rest):
        first, second = (draw.sample(calls, len(calls)) for _ in range(2))
        rounds += [first, sorted(second, key=lambda one: one is not first[-1])]
    return rounds
