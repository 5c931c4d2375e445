"""Calls up to the sizes that a lesson promises: far too large to be judged in full, so they are judged in samples.

Each size with a limit gets a call at the limit, and a call between it and the sizes that are judged in full, whose rows
are all the same row where they may be. Numbers of the file that are as large get calls around them. The other sizes are
1, so that no tensor has more elements than the lesson allows. In further calls all sizes are ordinary, and elements lie
as far apart as the lesson allows; a vector gets one in the file's own blocks, too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader.course import drawn_layouts
from grader.course.drawn_calls import carried_out, is_wide
from grader.course.drawn_layouts import Family
from grader.course.promise import REACH, SEVERAL, SMALL, DrawnCall, Promised, Sizes, StatedPromise, length, with_numbers
from grader.numerics import layouts
from grader.numerics.data_sets import seed_for
from grader.numerics.layouts import Layout

# Not transposed: where a size is 1, the stride along it would be so long that offsets of masked lanes leave int32. That
# does no harm and shows nothing. Long strides that matter come from `_far_apart`.
COMPACT = (drawn_layouts.contiguous, drawn_layouts.begins_later)
ONE_ROW = (drawn_layouts.repeated_first,)  # seen in all rows
MOST_AROUND = 4  # numbers of the file, with two calls each
FEW_BLOCKS = 8  # most blocks that a size lies past a number of the file, or that a call with elements far apart has


def large_calls(
    promise: StatedPromise, seed: int, test: str, after: int, of_file: Sequence[int] = ()
) -> list[DrawnCall]:
    """Returns the large calls of a run with this seed; their numbers begin after `after`.

    of_file: numbers that stand in the file. Calls that are not around them are the same for any file.
    """
    numbers, around = (random.Random(seed_for(seed, test, what)) for what in ("large calls", "large around"))
    calls = [with_numbers(call, numbers) for call in (*_calls(promise, numbers), *_far_apart(promise, numbers))]
    numbers.shuffle(calls)
    calls += [with_numbers(call, around) for call in _around(promise, of_file, around)]
    return [replace(call, number=number) for number, call in enumerate(calls, after + 1)]


def _calls(promise: StatedPromise, numbers: random.Random) -> Iterator[DrawnCall]:
    for name, one in promise.sizes.items():
        if one.limit:
            yield _of_size(promise, name, one.limit, COMPACT, numbers)
            yield _of_size(promise, name, _between(one, numbers), ONE_ROW, numbers)


def _of_size(
    promise: StatedPromise, name: str, size: int, families: Sequence[Family], numbers: random.Random
) -> DrawnCall:
    """Returns a call in which this size has this value, and all others are 1."""
    sizes = _alone(promise, name, size)
    layouts = _layouts(promise, families, numbers)
    return DrawnCall(0, sizes, numbers.choice(promise.dtypes), layouts, _kinds(promise))


def _alone(promise: StatedPromise, name: str, size: int) -> dict[str, int]:
    return {other: least.fitting(1) for other, least in promise.sizes.items()} | {name: size}


def _around(promise: StatedPromise, of_file: Sequence[int], numbers: random.Random) -> Iterator[DrawnCall]:
    """Yields calls around numbers of the file, since a rule of the file may begin there: a size that differs from the
    number by at most 1, then a size that is a few blocks larger. No call with the file's own blocks and a size as large
    is carried out in full."""
    places = [
        (name, number)
        for name, one in promise.sizes.items()
        for number in of_file
        if number <= one.limit and (carried_out(one) < number or is_wide(promise, _alone(promise, name, number)))
    ]
    for name, number in numbers.sample(places, min(MOST_AROUND, len(places))):
        one = promise.sizes[name]
        for past in (numbers.randint(-1, 1), numbers.randint(2, FEW_BLOCKS * one.block)):
            call = _of_size(promise, name, min(number + past, one.limit), COMPACT, numbers)
            yield replace(call, dtype=promise.dtypes[0])


def _between(one: Sizes, numbers: random.Random) -> int:
    """Returns a size that is too large to be judged in full: each power of two is as likely as any other."""
    least = min(carried_out(one) + 1, one.limit)
    return round(math.exp(numbers.uniform(math.log(least), math.log(one.limit))))


def _far_apart(promise: StatedPromise, numbers: random.Random) -> Iterator[DrawnCall]:
    """Yields calls whose elements lie as far apart as is promised, in the blocks that the tests state.

    The file's own blocks are large, and each element takes a page at these distances: they are judged for vectors
    alone, whose strides are then other than those of any call in small blocks.
    """
    if not any(_may_be_far_apart(one) for one in promise.arguments.values()):
        return
    constants = promise.blocks[0] if promise.blocks else {}
    sizes = {name: _few_blocks(one, constants, numbers) for name, one in promise.sizes.items()}
    call = _of_far_apart(promise, sizes, constants, numbers)
    yield call
    for name, one in promise.arguments.items():
        if one.reach > REACH:
            layout = _one_column(length(one.shape[0], sizes), one.reach)
            yield replace(call, dtype=promise.dtypes[0], layouts=call.layouts | {name: layout})
    if constants and all(len(one.shape) < 2 for one in promise.arguments.values()):
        sizes = {name: min(one.block + numbers.randint(2, SMALL), one.largest) for name, one in promise.sizes.items()}
        yield _of_far_apart(promise, sizes, {}, numbers)


def _of_far_apart(
    promise: StatedPromise, sizes: dict[str, int], constants: dict[str, int], numbers: random.Random
) -> DrawnCall:
    found = _layouts(promise, COMPACT, numbers)
    for name, one in promise.arguments.items():
        if _may_be_far_apart(one):
            shape = tuple(length(dimension, sizes) for dimension in one.shape)
            found[name] = _of_reach(shape, one.reach, numbers)
    return DrawnCall(0, sizes, numbers.choice(promise.dtypes), found, _kinds(promise), constants)


def _few_blocks(one: Sizes, constants: dict[str, int], numbers: random.Random) -> int:
    """Returns a size of several blocks, the last of them in part."""
    block = constants.get(one.name, one.block)
    return replace(one, most=min(one.most, FEW_BLOCKS * block)).of_class(SEVERAL, numbers, block)


def _may_be_far_apart(one: Promised) -> bool:
    return bool(one.shape) and drawn_layouts.every_third in one.families


def _of_reach(shape: tuple[int, ...], reach: int, numbers: random.Random) -> Layout:
    dimensions = [dimension for dimension, size in enumerate(shape) if size > 1 and reach == REACH]
    return layouts.far_apart(shape, numbers.choice(dimensions or [0]), reach)


def _one_column(rows: int, reach: int) -> Layout:
    """Returns a layout with rows far apart, in each of which all columns are one element."""
    layout = layouts.far_apart((rows, 1), 0, reach)
    return replace(layout, name=f"{layout.name}, one column expanded", repeated=(1,))


def _layouts(promise: StatedPromise, families: Sequence[Family], numbers: random.Random) -> dict[str, Layout]:
    """Returns layouts of these families, for arguments of several dimensions that may have them; else compact
    layouts."""
    found = {}
    for name, one in promise.arguments.items():
        wanted = families if len(one.shape) > 1 else COMPACT
        fitting = [family for family in (*wanted, *COMPACT) if family in one.families] or one.families[:1]
        found[name] = numbers.choice(fitting[: len(wanted)])(numbers, len(one.shape))
    return found


def _kinds(promise: StatedPromise) -> dict:
    return {name: one.values[0] for name, one in promise.arguments.items()}
