"""Calls in which one input is a part of another's memory: the two differ in strides or shape, and begin at one address,
or the part begins further on.

They show what a host function does where two addresses are equal, or near. Each element of the part is an element of
the whole too, so a kernel may read it through either argument.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from grader.course import drawn_layouts
from grader.course.promise import Promised, StatedPromise, length
from grader.numerics import layouts
from grader.numerics.data_sets import Data
from grader.numerics.layouts import CONTIGUOUS, Layout

MOST_VIEWS = 4  # calls of this kind in a run
MOST_OF_HIGHER_RANK = 1  # of these, with tensors of more than two dimensions
MOST_ELEMENTS = 1 << 14  # of an argument in a call of this kind

Sizes = dict[str, int]


@dataclass(frozen=True)
class SharedView:
    """Sizes and layouts of a call in which the argument `part` sees elements of the argument `whole`.

    at: elements from the first of the whole to the first of the part.
    """

    whole: str
    part: str
    sizes: Sizes
    layouts: dict[str, Layout]
    at: int = 0


def shared_views(promise: StatedPromise, numbers: random.Random) -> list[SharedView]:
    """Returns at most MOST_VIEWS of the shared views that the promise permits, chosen by `numbers`; those in which the
    part has strides or a shape of its own come before those in which it is the whole."""
    views = []
    inputs = [name for name, argument in promise.arguments.items() if _may_share(argument)]
    for whole, part in combinations(inputs, 2):
        if promise.arguments[whole].dtype == promise.arguments[part].dtype:
            for sizes, of_whole, of_part, at in _ways(promise, whole, part, numbers):
                views.append(SharedView(whole, part, sizes, {whole: of_whole, part: of_part}, at))
    shuffled = numbers.sample(views, len(views))
    higher = [view for view in shuffled if len(promise.arguments[view.part].shape) > 2]
    others = [view for view in shuffled if view not in higher]
    return sorted(others + higher[:MOST_OF_HIGHER_RANK], key=lambda view: _is_the_whole(promise, view))[:MOST_VIEWS]


def _is_the_whole(promise: StatedPromise, view: SharedView) -> bool:
    whole, part = promise.arguments[view.whole].shape, promise.arguments[view.part].shape
    return len(whole) == len(part) == 2 and view.layouts[view.part] == CONTIGUOUS


def _may_share(argument: Promised) -> bool:
    """Returns whether an argument is an input with its own values that may be contiguous and that is not stored to."""
    rank = len(argument.shape)
    if not rank or argument.is_filled or drawn_layouts.contiguous not in argument.families:
        return False
    if not callable(argument.values[0]):
        return False
    data = argument.values[0](*(1,) * rank)
    return isinstance(data, Data) and not (data.is_output or data.together or data.made_by)


Way = tuple[Sizes, Layout, Layout, int]


def _ways(promise: StatedPromise, whole: str, part: str, numbers: random.Random) -> Iterator[Way]:
    """Yields the sizes of a call, the layout of the whole, that of the part in the memory of the whole, and where it
    begins there."""
    first, second = promise.arguments[whole], promise.arguments[part]
    rank = len(second.shape)
    if len(first.shape) == rank >= 2:
        yield from _squares(promise, whole, part, numbers)
    elif len(first.shape) == 2 > rank and first.shape[-1] == second.shape[0]:  # the first row, or another one
        sizes = _sizes(promise, numbers)
        yield sizes, CONTIGUOUS, CONTIGUOUS, 0
        if drawn_layouts.begins_later in second.families:  # at any address
            sizes, rows = _sizes(promise, numbers), numbers.randint(2, 5)
            sizes |= {first.shape[0]: rows}
            yield sizes, CONTIGUOUS, CONTIGUOUS, numbers.randint(1, rows - 1) * sizes[second.shape[0]]
        if drawn_layouts.transposed in first.families and drawn_layouts.every_second in second.families:
            rows = numbers.randint(2, 5)
            yield sizes | {first.shape[0]: rows}, layouts.transposed(), layouts.every(rows, 1), 0
    elif len(first.shape) == rank == 1 and first.shape != second.shape and _are_names(promise, first, second):
        (of_whole,), (of_part,) = first.shape, second.shape
        sizes = _sizes(promise, numbers)
        steps = 2 if drawn_layouts.every_second in second.families else 1
        sizes[of_part] = min(promise.sizes[of_part].most, (sizes[of_whole] + steps - 1) // steps)
        yield sizes, CONTIGUOUS, layouts.every(2, 1) if steps > 1 else CONTIGUOUS, 0


def _squares(promise: StatedPromise, whole: str, part: str, numbers: random.Random) -> Iterator[Way]:
    """Yields calls in which both arguments have one shape: the part is the whole itself, or its transpose; with more
    than two dimensions, the whole with its first two exchanged."""
    first, second = promise.arguments[whole], promise.arguments[part]
    most = min([size.most for size in promise.sizes.values() if not size.only] + [math.isqrt(MOST_ELEMENTS)])
    side = numbers.randint(most // 2 + 1, most)
    sizes = {name: size.fitting(side) for name, size in promise.sizes.items()}
    shapes = [tuple(length(dimension, sizes) for dimension in argument.shape) for argument in (first, second)]
    if shapes[0] != shapes[1]:
        return
    rank = len(second.shape)
    if rank == 2:
        yield sizes, CONTIGUOUS, CONTIGUOUS, 0
    if drawn_layouts.transposed in second.families and shapes[0][0] == shapes[0][1] > 1:
        turned = layouts.transposed() if rank == 2 else layouts.stored_as(1, 0, *range(2, rank))
        yield sizes, CONTIGUOUS, turned, 0


def _sizes(promise: StatedPromise, numbers: random.Random) -> Sizes:
    """Returns sizes of several blocks, and not too many elements."""
    room = int(MOST_ELEMENTS ** (1 / max(2, len(promise.sizes))))
    sizes = {}
    for name, size in promise.sizes.items():
        most = min(size.most, max(room, size.block + size.block // 2))
        sizes[name] = size.fitting(numbers.randint(most // 2 + 1, most))
    return sizes


def _are_names(promise: StatedPromise, *arguments: Promised) -> bool:
    return all(argument.shape[0] in promise.sizes for argument in arguments)
