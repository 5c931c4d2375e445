"""Calls up to the sizes that a lesson promises: far too large to be judged in full, and judged in samples.

For each size with a limit there is a call at it, and one between it and the sizes that are judged in full. The other
sizes are 1, so that no tensor has more elements than the lesson allows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

from grader.course import drawn_layouts
from grader.course.promise import Call, Promise, Sizes, with_numbers
from grader.numerics.data_sets import seed_for

# Not transposed: where a size is 1, the stride along it would be so long that offsets of masked lanes leave int32. That
# does no harm, and would be told of a kernel that is wrong for another reason.
COMPACT = (drawn_layouts.contiguous, drawn_layouts.begins_later)


def large_calls(promise: Promise, seed: int, test: str, after: int) -> list[Call]:
    """Returns those of a run with this seed; their numbers begin behind `after`."""
    numbers = random.Random(seed_for(seed, test, "large calls"))
    calls = list(_calls(promise, numbers))
    numbers.shuffle(calls)
    return [replace(call, number=number) for number, call in enumerate(calls, after + 1)]


def _calls(promise: Promise, numbers: random.Random) -> Iterator[Call]:
    for name, one in promise.sizes.items():
        if one.limit:
            for size in (one.limit, _between(one, numbers)):
                sizes = dict.fromkeys(promise.sizes, 1) | {name: size}
                call = Call(0, sizes, numbers.choice(promise.dtypes), _layouts(promise, numbers), _kinds(promise))
                yield with_numbers(call, numbers)


def _between(one: Sizes, numbers: random.Random) -> int:
    """A size beyond those that are judged in full: each power of two is as likely as any other."""
    least = max(one.most, one.once) + 1
    return round(math.exp(numbers.uniform(math.log(least), math.log(one.limit))))


def _layouts(promise: Promise, numbers: random.Random) -> dict:
    found = {}
    for name, one in promise.arguments.items():
        families = [family for family in COMPACT if family in one.families]
        found[name] = numbers.choice(families)(numbers, len(one.shape))
    return found


def _kinds(promise: Promise) -> dict:
    return {name: one.values[0] for name, one in promise.arguments.items()}
