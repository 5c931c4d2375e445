"""Calls up to the sizes that a lesson promises. Most are far too large to be judged in full: a sample is judged.

Each size has a call at its limit, and calls on the way to it: one for each kind of values where all programs can be
run, else one whose rows are all the same row where they may be. Numbers of the file that are as large get calls around
them. The other sizes are 1, so that no tensor has more elements than the lesson allows. In further calls all sizes are
ordinary, and elements lie as far apart as the lesson allows; a vector gets one in the file's own blocks, too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader.course import drawn_layouts
from grader.course.drawn_calls import GUESSED, MOST_LANES, carried_out, is_cache, is_wide, lanes, smallest_blocks
from grader.course.drawn_layouts import COMPACT, Family
from grader.course.promise import (
    REACH,
    SEVERAL,
    SMALL,
    DrawnCall,
    FixedNumber,
    Into,
    Kind,
    OfSequences,
    Promised,
    Sizes,
    StatedPromise,
    length,
    sizes_of,
    with_numbers,
)
from grader.numerics import layouts
from grader.numerics.arguments import DataOrNumber
from grader.numerics.data_sets import Data, normal, seed_for, subnormal
from grader.numerics.layouts import Layout

# Other layouts are of COMPACT, not transposed: where a size is 1, the stride along it would be so long that offsets of
# masked lanes leave int32. That does no harm and shows nothing. Long strides that matter come from `_far_apart`.
ONE_ROW = (drawn_layouts.repeated_first,)  # seen in all rows
MOST_AROUND = 4  # numbers of the file, with two calls each
MOST_ELEMENTS = 1 << 22  # from the first to the last of an argument, in such a call
MOST_TOGETHER = 5 << 18  # product of all sizes, in such a call that is judged in full
MOST_OF_FEW = 1 << 16  # the same, for a size that has few values to be other than the smallest of them
MOST_KEYS = 1 << 15  # of a sequence whose pages have several rows
MOST_IN_PAGES = 1 << 17  # elements of a cache that has no page more than its sequences need
MOST_KINDS = 3  # calls on the way to a limit that are judged in full, each with its own kinds of values
MOST_PROGRAMS = 1 << 14  # in a call with many of several sizes
FEW = range(2, 6)  # indices into a dimension that is large, or what it is multiplied with
ALIGNMENT = 32
FEW_BLOCKS = 8  # most blocks that a size lies past a number of the file, or that a call with elements far apart has


def large_calls(
    promise: StatedPromise, seed: int, test: str, after: int, of_file: Sequence[int] = ()
) -> list[DrawnCall]:
    """Returns the large calls of a run with this seed; their numbers begin after `after`.

    of_file: numbers that stand in the file. Calls that are not around them are the same for any file.
    """
    numbers, around = (random.Random(seed_for(seed, test, what)) for what in ("large calls", "large around"))
    calls = [with_numbers(call, numbers) for call in _of_any_kind(promise, numbers)]
    numbers.shuffle(calls)
    calls += [with_numbers(call, around) for call in _around_numbers(promise, of_file, around)]
    return [replace(call, number=number) for number, call in enumerate(calls, after + 1)]


def _of_any_kind(promise: StatedPromise, numbers: random.Random) -> Iterator[DrawnCall]:
    yield from _calls(promise, numbers)
    yield from _many_at_once(promise, numbers)
    yield from _limit_together(promise, numbers)
    yield from _far_apart(promise, numbers)


def _calls(promise: StatedPromise, numbers: random.Random) -> Iterator[DrawnCall]:
    """Yields calls at each limit and on the way to it, with several kinds of values where they are judged in full."""
    for name, one in promise.sizes.items():
        if not one.limit:
            continue
        few = numbers.sample(FEW, len(FEW))  # another number of them in each call
        at_limit = _of_size(promise, name, one.limit, few[-1], COMPACT, numbers)
        yield replace(at_limit, values=at_limit.values | _largest_options(promise))
        if is_sampled(promise, at_limit):
            size = _aligned(_size_between(carried_out(one) + 1, one.limit, numbers), numbers.randrange(2), one.limit)
            between = _of_size(promise, name, size, few[0], ONE_ROW, numbers)
            yield replace(between, values=_sampled_kinds(promise, numbers))
            if _needs_values_in_full(promise, one):
                yield _largest_in_full(promise, name, few[0], numbers)
            continue
        kinds = {argument: numbers.sample(of.values, len(of.values)) for argument, of in promise.arguments.items()}
        own = max(len(kinds[argument]) for argument, of in promise.arguments.items() if _has(of, name))
        turns = min(MOST_KINDS, max(own, 2))
        if _factors_with(promise, name):
            # The size that it is multiplied with has each of a few values once: a rule of the file may be for groups of
            # 2. Values so small that nothing depends on them would hide it.
            turns = len(FEW)
            kinds = {argument: [kind for kind in of if kind is not subnormal] or of for argument, of in kinds.items()}
        for turn in range(turns):
            size = _size_between(one.most + 1, one.limit, numbers)
            size = _aligned(size, turn, one.limit) if turn else _one_past(size, one)
            between = _of_size(promise, name, size, few[turn], COMPACT, numbers)
            yield replace(between, values={argument: of[turn % len(of)] for argument, of in kinds.items()})


def _needs_values_in_full(promise: StatedPromise, size: Sizes) -> bool:
    """Returns whether no sample compares what a large size makes: of a cache, no value tells which page was read; where
    a size has few values, as that of a head, several launches or long loops are usual."""
    has_heads = any(other.only for other in promise.sizes.values())
    return any(is_cache(of) for of in promise.arguments.values()) or bool(size.name) and has_heads


def _largest_in_full(promise: StatedPromise, name: str, few: int, numbers: random.Random) -> DrawnCall:
    """Returns a call with this size as large as it may be where all programs are run."""
    size = numbers.randint(promise.sizes[name].limit // 2 + 1, promise.sizes[name].limit)
    while is_sampled(promise, call := _of_size(promise, name, size, few, COMPACT, numbers)):
        size //= 2
    return call


def _many_at_once(promise: StatedPromise, numbers: random.Random) -> Iterator[DrawnCall]:
    """Yields a call with many of all sizes of the first argument that no block cuts: as many programs in small blocks
    as are all run. A file may number them together, and each size is large alone in other calls."""
    names = _uncut_sizes(promise)
    if len(names) < 2:
        return
    _, constants = smallest_blocks(promise)
    few = {name: min(FEW) for name, stated in promise.sizes.items() if stated.name in constants}
    sizes = _ones_but(promise, names[0], 1, min(FEW)) | dict.fromkeys(names, 1) | few
    room = min(MOST_PROGRAMS, MOST_LANES // 2 // lanes(promise, sizes, constants))
    many = {}
    for name, left in zip(numbers.sample(names, len(names)), range(len(names), 0, -1)):
        size = round(room ** (numbers.uniform(0.8, 1.2) / left if left > 1 else 1))
        many[name] = min(size, promise.sizes[name].limit)
        room //= many[name]
    sizes = _ones_but(promise, names[0], many[names[0]], min(FEW)) | few | many
    layouts, values = _layouts(promise, COMPACT, numbers), {n: of.values[0] for n, of in promise.arguments.items()}
    yield DrawnCall(0, sizes, numbers.choice(promise.dtypes), layouts, values, constants)


def _limit_together(promise: StatedPromise, numbers: random.Random) -> Iterator[DrawnCall]:
    """Yields for each of several sizes that no block cuts a call in which they are together what the largest of them
    may be, and the others of them are few, where that is too much to be run in full. A program has one number for all
    of them: where the other sizes are 1, a part of what a file computes from that number is 0, however large it is."""
    names = _uncut_sizes(promise)
    if len(names) < 2:
        return
    together = max(promise.sizes[name].limit for name in names)
    for large in names:
        few = {name: promise.sizes[name].fitting(numbers.choice(FEW)) for name in names if name != large}
        size = min(together // math.prod(few.values()), promise.sizes[large].limit)
        call = _of_size(promise, large, size, min(FEW), COMPACT, numbers)
        call = replace(call, sizes=call.sizes | few)
        if is_sampled(promise, call):
            yield call


def _uncut_sizes(promise: StatedPromise) -> list[str]:
    """Returns the sizes of the first argument that no block cuts: a file may number them together."""
    first = next(iter(promise.arguments.values()))
    return [name for dimension in first.shape for name in sizes_of(dimension) if _is_uncut(promise.sizes[name])]


def _is_uncut(size: Sizes) -> bool:
    return bool(size.limit) and not size.name and size.block <= GUESSED


def _has(argument: Promised, name: str) -> bool:
    """Returns whether this size is in the argument's shape, or what the argument is."""
    of_shape = any(name in sizes_of(dimension) for dimension in argument.shape)
    return of_shape or any(isinstance(kind, FixedNumber) and kind.number == name for kind in argument.values)


def is_sampled(promise: StatedPromise, call: DrawnCall) -> bool:
    """Returns whether a sample of programs is run of a large call, and not all of them."""
    shapes = {n: [length(dimension, call.sizes) for dimension in of.shape] for n, of in promise.arguments.items()}
    reach = max(call.layouts[name].strides(tuple(shape))[1] for name, shape in shapes.items())
    return reach > MOST_ELEMENTS or is_wide(promise, call.sizes, call.constants)


def _of_size(
    promise: StatedPromise, name: str, size: int, few: int, families: Sequence[Family], numbers: random.Random
) -> DrawnCall:
    """Returns a call in which this size has this value, and all others are small: as small as may be in a sample. few:
    see _alone."""
    sizes = _ones_but(promise, name, size, few)
    layouts = _layouts(promise, families, numbers)
    call = DrawnCall(0, sizes, numbers.choice(promise.dtypes), layouts, _ordinary(promise))
    if is_sampled(promise, call):
        return call
    values = {name: of.values[0] for name, of in promise.arguments.items()}
    sizes = _with_long_sequences(promise, name, _with_more(promise, sizes, numbers), numbers)
    return replace(call, sizes=sizes, values=values)


def _with_long_sequences(
    promise: StatedPromise, name: str, sizes: dict[str, int], numbers: random.Random
) -> dict[str, int]:
    """Returns the sizes with more rows of a page, or more pages of a sequence, where `name` is the other of the two;
    and with a page for each of a sequence's, as far as there is room: of keys that are all one key none is missed."""
    kinds = (kind for one in promise.arguments.values() for kind in one.values)
    of = next((kind for kind in kinds if isinstance(kind, OfSequences)), None)
    if of is None:
        return sizes
    B, T, P, page = of.sizes
    others = {T: page, page: T}
    if name in others and 2 * sizes[name] <= MOST_KEYS:
        most = min(MOST_KEYS // sizes[name], promise.sizes[others[name]].limit)
        sizes = sizes | {others[name]: numbers.randint(2, most)}
    shape = next(one.shape for one in promise.arguments.values() if P in one.shape)
    elements = math.prod(length(dimension, sizes) for dimension in shape if dimension != P)
    room = max(2, MOST_IN_PAGES // elements)
    return sizes | {P: max(sizes[P], min(sizes[B] * sizes[T], room, promise.sizes[P].limit))}


def _with_more(promise: StatedPromise, sizes: dict[str, int], numbers: random.Random) -> dict[str, int]:
    """Returns the sizes, with a few instead of 1 wherever all programs can still be run: of one key, or one row, many
    mistakes show nothing."""
    for name in sorted(numbers.sample(sorted(sizes), len(sizes)), key=lambda name: promise.sizes[name].only):
        size = numbers.choice(promise.sizes[name].only or FEW)
        is_one = sizes[name] == promise.sizes[name].fitting(1)
        more = sizes | {name: promise.sizes[name].fitting(size) if is_one else sizes[name]}
        most = MOST_OF_FEW if promise.sizes[name].only else MOST_TOGETHER
        if math.prod(more.values()) <= most and not is_wide(promise, more):
            sizes = more
    return sizes


def _ones_but(promise: StatedPromise, name: str, size: int, few: int) -> dict[str, int]:
    """Returns sizes of 1, but for `name`. A size that it is multiplied with in a dimension is `few`, and so are indices
    into it; of many indices, each may be another one, but where each leads into a row of its own, which has `few`
    columns."""
    sizes = {other: least.fitting(1) for other, least in promise.sizes.items()} | {name: size}
    sizes |= {other: promise.sizes[other].fitting(few) for other in _factors_with(promise, name)}
    for of in promise.arguments.values():
        for kind in of.values:
            if isinstance(kind, Into) and name in kind.sizes:
                sizes |= {other: promise.sizes[other].fitting(few) for other in of.shape if other in sizes}
            elif isinstance(kind, Into) and name in of.shape:
                into = kind.sizes[0]
                in_rows = any({name, into} <= set(other.shape) for other in promise.arguments.values())
                sizes[into] = promise.sizes[into].fitting(few) if in_rows else min(size, promise.sizes[into].largest)
            elif isinstance(kind, OfSequences) and name == kind.page:
                sizes[kind.columns] = min(FEW)  # so that all rows of a page are keys
    return sizes


def _factors_with(promise: StatedPromise, name: str) -> list[str]:
    """Returns the sizes that this one is multiplied with in a dimension, as the heads of a group with the groups."""
    dimensions = (sizes_of(dimension) for of in promise.arguments.values() for dimension in of.shape)
    factors = (factors for factors in dimensions if name in factors)
    return list(dict.fromkeys(other for several in factors for other in several if other != name))


def _around_numbers(promise: StatedPromise, of_file: Sequence[int], numbers: random.Random) -> Iterator[DrawnCall]:
    """Yields calls around numbers of the file, since a rule of the file may begin there: a size that differs from the
    number by at most 1, then a size that is a few blocks larger. No call with the file's own blocks and a size as large
    is carried out in full."""
    places = [
        (name, number)
        for name, size in promise.sizes.items()
        for number in of_file
        if number <= size.limit
        and (carried_out(size) < number or is_wide(promise, _ones_but(promise, name, number, FEW[-1])))
    ]
    for name, number in numbers.sample(places, min(MOST_AROUND, len(places))):
        stated = promise.sizes[name]
        for past in (numbers.randint(-1, 1), numbers.randint(2, FEW_BLOCKS * stated.block)):
            call = _of_size(promise, name, min(number + past, stated.limit), numbers.choice(FEW), COMPACT, numbers)
            yield replace(call, dtype=promise.dtypes[0])


def _size_between(least: int, limit: int, numbers: random.Random) -> int:
    """Returns a size from `least` to the limit: each power of two is as likely as any other."""
    return round(math.exp(numbers.uniform(math.log(min(least, limit)), math.log(limit))))


def _aligned(size: int, turn: int, limit: int) -> int:
    """Returns, in every second turn, an odd multiple of ALIGNMENT near the size: a rule of the file may tell sizes that
    are a multiple of 16 or 32 from others, and be wrong in those that are no power of two."""
    multiple = max(size // ALIGNMENT, 3)
    aligned = (multiple - 1 + multiple % 2) * ALIGNMENT
    return aligned if turn % 2 and aligned <= limit else size


def _one_past(size: int, stated: Sizes) -> int:
    """Returns a size near this one that is one past whole blocks: the last of them holds one element."""
    past = size + (1 - size) % stated.block
    return past if past <= stated.limit else past - stated.block


def _far_apart(promise: StatedPromise, numbers: random.Random) -> Iterator[DrawnCall]:
    """Yields calls whose elements lie as far apart as is promised, in the blocks that the tests state.

    The file's own blocks are large, and each element takes a page at these distances: they are judged for vectors
    alone, whose strides are then other than those of any call in small blocks.
    """
    if not any(_may_be_far_apart(argument) for argument in promise.arguments.values()):
        return
    constants = promise.blocks[0] if promise.blocks else {}
    sizes = {name: _few_blocks(size, constants, numbers) for name, size in promise.sizes.items()}
    call = _of_far_apart(promise, sizes, constants, numbers)
    yield call
    for name, argument in promise.arguments.items():
        if argument.reach > REACH:
            layout = _one_column(length(argument.shape[0], sizes), argument.reach)
            yield replace(call, dtype=promise.dtypes[0], layouts=call.layouts | {name: layout})
    if constants and all(len(argument.shape) < 2 for argument in promise.arguments.values()):
        sizes = {name: min(one.block + numbers.randint(2, SMALL), one.largest) for name, one in promise.sizes.items()}
        yield _of_far_apart(promise, sizes, {}, numbers)


def _of_far_apart(
    promise: StatedPromise, sizes: dict[str, int], constants: dict[str, int], numbers: random.Random
) -> DrawnCall:
    found = _layouts(promise, COMPACT, numbers)
    for name, argument in promise.arguments.items():
        if _may_be_far_apart(argument):
            shape = tuple(length(dimension, sizes) for dimension in argument.shape)
            found[name] = _of_reach(shape, argument.reach, numbers)
    return DrawnCall(0, sizes, numbers.choice(promise.dtypes), found, _ordinary(promise), constants)


def _few_blocks(size: Sizes, constants: dict[str, int], numbers: random.Random) -> int:
    """Returns a size of several blocks, the last of them in part."""
    block = constants.get(size.name, size.block)
    return replace(size, most=min(size.most, FEW_BLOCKS * block)).of_class(SEVERAL, numbers, block)


def _may_be_far_apart(argument: Promised) -> bool:
    return bool(argument.shape) and drawn_layouts.every_third in argument.families


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
    for name, argument in promise.arguments.items():
        wanted = families if len(argument.shape) > 1 else COMPACT
        fitting = [family for family in (*wanted, *COMPACT) if family in argument.families] or argument.families[:1]
        found[name] = numbers.choice(fitting[: len(wanted)])(numbers, len(argument.shape))
    return found


def _ordinary(promise: StatedPromise) -> dict[str, Kind]:
    """Returns the ordinary kind of each argument, of those that a sample can have; of a cache whose rows depend on its
    table, numbers that do not."""
    return {name: _kinds_of_samples(argument)[0] for name, argument in promise.arguments.items()}


def _largest_options(promise: StatedPromise) -> dict[str, Kind]:
    """Returns for each number that may be left out the largest that it may be, since it may be cut as a size may be."""
    options: dict[str, Kind] = {}
    for name, argument in promise.arguments.items():
        numbers = [kind.number for kind in argument.values if isinstance(kind, FixedNumber)]
        largest = max((number for number in numbers if isinstance(number, int | float)), default=None)
        if numbers[:1] == [None] and largest is not None:
            options[name] = FixedNumber(largest)
    return options


def _sampled_kinds(promise: StatedPromise, numbers: random.Random) -> dict[str, Kind]:
    return {name: numbers.choice(_kinds_of_samples(argument)) for name, argument in promise.arguments.items()}


def _kinds_of_samples(one: Promised) -> list[Kind]:
    """Returns the argument's kinds of values that need no memory for all of its elements."""
    if not one.shape:
        return list(one.values)
    fitting = [kind for kind in one.values if not callable(kind) or _is_one_by_one(kind(*[1] * len(one.shape)))]
    fitting = [normal if isinstance(kind, OfSequences) and kind.is_cache else kind for kind in fitting]
    return fitting or list(one.values[:1])


def _is_one_by_one(data: DataOrNumber) -> bool:
    return isinstance(data, Data) and (data.is_one_by_one or data.is_output)
