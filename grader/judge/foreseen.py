"""Calls that tests will ask for, and the order in which to begin with them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from grader.course.trial import Trial


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
