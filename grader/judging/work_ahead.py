"""The calls that tests will ask for, and the order in which they are recorded and compiled."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.course.trial import Trial

EARLY = 6  # calls that are asked for first, and as many others: most wrong kernels fail in the first test or two


@dataclass
class Foreseen:
    """A recorded call that a test will ask for."""

    trial: Trial
    if_right: bool = False  # asked for only if all values are right


def in_turns(foreseen: list[Foreseen]) -> list[Foreseen]:
    """Returns the calls with the file's own block sizes in turn with the calls that set block sizes.

    Kernels with their own block sizes take the compiler longest. The first call stays first: it is asked for at once.
    """
    own = [call for call in foreseen if not call.trial.constants]
    others = [call for call in foreseen if call.trial.constants]
    first, second = (own, others) if foreseen[:1] == own[:1] else (others, own)
    return [call for pair in itertools.zip_longest(first, second) for call in pair if call is not None]


def in_drawn_order(foreseen: list[Foreseen], draw: random.Random) -> list[list[Foreseen]]:
    """Returns four rounds in drawn orders; each call is in two of them, the first and second or the third and last.

    The calls that are asked for first are in the first two rounds, among others that are drawn: their verdict need not
    wait until all calls are recorded. The second and the last round begin with the call that the round before ended
    with: made twice in a row, it gets the same tensors again.
    """
    first_ones, later = foreseen[:EARLY], foreseen[EARLY:]
    early = first_ones + draw.sample(later, min(EARLY, len(later)))
    rest = [call for call in later if not any(call is other for other in early)]
    rounds = []
    for calls in (early, rest):
        first, second = (draw.sample(calls, len(calls)) for _ in range(2))
        rounds += [first, sorted(second, key=lambda call: call is not first[-1])]
    return rounds
