"""Calls in which one condition of one argument is broken, and all others hold: an entry has to refuse each of them.

They are drawn for arguments whose rows are promised to be aligned, in matrices of one row and of several.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from grader.course import drawn_layouts
from grader.course.promise import DrawnCall, Promised, StatedPromise, length
from grader.numerics import layouts
from grader.numerics.data_sets import seed_for
from grader.numerics.layouts import ALIGNED_ROWS, Layout
from grader.wire.messages import DTYPE_BYTES

PIECE = 16  # bytes: the unit in which descriptors count addresses


@dataclass(frozen=True)
class UnpromisedDraw:
    """A call that an entry has to refuse. because: the condition that is broken, for a sentence."""

    call: DrawnCall
    because: str


def unpromised_draws(promise: StatedPromise, seed: int, test: str, after: int) -> list[UnpromisedDraw]:
    """Returns the calls of a run with this seed; their numbers begin after `after`."""
    numbers = random.Random(seed_for(seed, test, "unpromised"))
    draws = [drawn for name in promise.arguments for drawn in _draws_of(promise, name, numbers)]
    return [replace(drawn, call=replace(drawn.call, number=number)) for number, drawn in enumerate(draws, after + 1)]


def _draws_of(promise: StatedPromise, name: str, numbers: random.Random) -> Iterator[UnpromisedDraw]:
    argument = promise.arguments[name]
    if argument.families != drawn_layouts.ALIGNED:
        return
    for rows in (1, 0):
        call = _plain(promise, argument, rows, numbers)
        dtype = argument.dtype or call.dtype
        shape = tuple(length(dimension, call.sizes) for dimension in argument.shape)
        for layout, because in _broken(name, shape, DTYPE_BYTES[dtype], numbers):
            yield UnpromisedDraw(replace(call, layouts=call.layouts | {name: layout}), because)


def _plain(promise: StatedPromise, argument: Promised, rows: int, numbers: random.Random) -> DrawnCall:
    """Returns a small call that is promised, in which this argument has `rows` rows; 0 stands for several."""
    sizes = {name: other.fitting(numbers.randint(9, min(40, other.most))) for name, other in promise.sizes.items()}
    if rows and argument.shape[0] in sizes:
        sizes[argument.shape[0]] = promise.sizes[argument.shape[0]].fitting(rows)
    plain = {name: other.plain_layout for name, other in promise.arguments.items()}
    values = {name: other.values[0] for name, other in promise.arguments.items()}
    return DrawnCall(0, sizes, promise.dtypes[0], plain, values)


def _broken(name: str, shape: tuple[int, ...], item: int, numbers: random.Random) -> Iterator[tuple[Layout, str]]:
    late = numbers.choice((1, 3, 5, 7))
    yield ALIGNED_ROWS.at(late), f"{name} begins {late * item} bytes after a multiple of {PIECE}"
    unaligned = [by for by in range(1, 9) if (shape[-1] + by) * item % PIECE]
    padded = layouts.padded(numbers.choice(unaligned), len(shape))
    apart = padded.strides(shape)[0][-2] * item
    yield padded, f"rows of {name} begin {apart} bytes apart, no multiple of {PIECE}"
    sparse = replace(layouts.every(2, len(shape)), multiple=PIECE // item)
    yield sparse, f"neighbours in a row of {name} lie 2 elements apart"
