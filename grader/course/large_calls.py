"""Calls up to the sizes that a lesson promises: far too large to be judged in full, and judged in samples.

For each size with a limit there is a call at it, and one between it and the sizes that are judged in full. The other
sizes are 1, so that no tensor has more elements than the lesson allows. In one further call all sizes are ordinary, and
elements lie as far apart as the lesson allows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

from grader.course import drawn_layouts
from grader.course.promise import SEVERAL, Call, Promise, Promised, Sizes, length, with_numbers
from grader.numerics import layouts
from grader.numerics.data_sets import seed_for
from grader.numerics.layouts import Layout

# Not transposed: where a size is 1, the stride along it would be so long that offsets of masked lanes leave int32. That
# does no harm and shows nothing. Strides that are long and matter are those of `_far_apart`.
COMPACT = (drawn_layouts.contiguous, drawn_layouts.begins_later)
REACH = 2**31 - 1  # elements from the first to the last of a view: all that a lesson promises


def large_calls(promise: Promise, seed: int, test: str, after: int) -> list[Call]:
    """Returns those of a run with this seed; their numbers begin behind `after`."""
    numbers = random.Random(seed_for(seed, test, "large calls"))
    calls = [with_numbers(call, numbers) for call in (*_calls(promise, numbers), *_far_apart(promise, numbers))]
    numbers.shuffle(calls)
    return [replace(call, number=number) for number, call in enumerate(calls, after + 1)]


def _calls(promise: Promise, numbers: random.Random) -> Iterator[Call]:
    for name, one in promise.sizes.items():
        if one.limit:
            for size in (one.limit, _between(one, numbers)):
                sizes = {other: least.fitting(1) for other, least in promise.sizes.items()} | {name: size}
                yield Call(0, sizes, numbers.choice(promise.dtypes), _layouts(promise, numbers), _kinds(promise))


def _between(one: Sizes, numbers: random.Random) -> int:
    """A size beyond those that are judged in full: each power of two is as likely as any other."""
    least = max(one.most, one.once) + 1
    return round(math.exp(numbers.uniform(math.log(least), math.log(one.limit))))


def _far_apart(promise: Promise, numbers: random.Random) -> Iterator[Call]:
    if not any(_may_be_far_apart(one) for one in promise.arguments.values()):
        return
    sizes = {name: one.of_class(SEVERAL, numbers, one.block) for name, one in promise.sizes.items()}
    found = _layouts(promise, numbers)
    for name, one in promise.arguments.items():
        if _may_be_far_apart(one):
            found[name] = _of_reach(tuple(length(dimension, sizes) for dimension in one.shape), numbers)
    yield Call(0, sizes, numbers.choice(promise.dtypes), found, _kinds(promise))


def _may_be_far_apart(one: Promised) -> bool:
    return bool(one.shape) and drawn_layouts.every_third in one.families


def _of_reach(shape: tuple[int, ...], numbers: random.Random) -> Layout:
    dimensions = [dimension for dimension, size in enumerate(shape) if size > 1]
    return layouts.far_apart(shape, numbers.choice(dimensions or [0]), REACH)


def _layouts(promise: Promise, numbers: random.Random) -> dict[str, Layout]:
    found = {}
    for name, one in promise.arguments.items():
        families = [family for family in COMPACT if family in one.families] or one.families[:1]
        found[name] = numbers.choice(families)(numbers, len(one.shape))
    return found


def _kinds(promise: Promise) -> dict:
    return {name: one.values[0] for name, one in promise.arguments.items()}
