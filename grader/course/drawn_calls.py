"""Calls drawn from a run's secret seed, within what a lesson promises.

The calls are stratified, not left to chance: with any seed, each layout, each class of size, each dtype and each kind
of values occurs in every run. A stratum sets what is particular about its calls. All that it leaves open is chosen so
that values of different axes meet, above all kinds of values with dtypes, and layouts with classes of sizes. The seed
decides which of them meet where not all can, and all numbers. A call is a recipe: nothing is drawn in memory here.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, cycle
from typing import Any

from grader.course import drawn_layouts
from grader.course.covering import Axis, Cell, Covering, Row
from grader.course.drawn_layouts import COMPACT, HOLES_ALIKE, SHARED, Family
from grader.course.promise import (
    GPUS,
    ONE,
    PAST,
    SEVERAL,
    SMALL,
    DrawnCall,
    Kind,
    OfSequences,
    Promised,
    Sizes,
    StatedPromise,
    is_whole,
    length,
    sizes_of,
    with_numbers,
)  # fmt: skip
from grader.course.shared_views import shared_views
from grader.numerics.data_sets import seed_for
from grader.wire.messages import CAPABILITY, MULTIPROCESSORS

MOST_CALLS = 35
LEAST_MIXED = 8  # calls for which no stratum sets anything
MOST_ELEMENTS = 1 << 15  # of an argument, in a call with a size that occurs once
MOST_PAIRS = 3  # of several inputs that are alike, in calls in which two are one tensor
SMALL_SIDE = 70  # of tensors that are one and the same in a call, though they have other names for their sizes
MOST_AROUND = 3  # calls with a size around a number of the file
MOST_LENGTHS = 24  # sequences of the call with lengths around numbers of the file
LONGEST = 1 << 17  # keys of a sequence, as the lesson promises
MANY_BLOCKS = 2100  # half of them are more than 1024
GUESSED = 16  # elements: up to here, a block that no constant names is one of heads, or pages, and no tile
MOST_LANES = 1 << 20  # of all blocks of an argument; in a call with more, only a sample of programs is run
PAST_A_NUMBER = -1, 0, 1, 1, 1  # of a number of the file: most calls have smaller sizes, so what begins above it is new
ROWS, COLUMNS = "BLOCK_M", ("BLOCK_N", "")  # of a tile: the names of their sizes' blocks
MANY_COLUMNS = 12  # of them as many times as usual, in a call with a last group that is not full
GROUP, GROUP_OF_MOST = "GROUP_M", 8  # rows of tiles that programs take together, and how many most files take
MOST_BOUNDARY = 4097  # largest size around a number of the file, unless other calls have a larger size

# Axes of the table, besides the axis of each size, layout and kind of values: (what, of which size or argument).
DTYPE, BLOCKS = ("dtype", ""), ("blocks", "")
# How much it matters that values of two axes meet; 1 for all other pairs of axes.
WEIGHTS = {frozenset(("kind", "dtype")): 9, frozenset(("layout", "size")): 3}
KIND_AND_ONE, KIND_AND_SHARED = 5, 3  # a kind of values with a size of 1, or with elements seen twice


@dataclass
class Draft:
    """A call in the making: the row of the table that it starts from, and what the finished call has instead of the
    row's values.

    is_empty: no element is computed, so that whatever meets in the row does not count as met.
    """

    row: dict = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    layouts: dict = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    is_empty: bool = False


def drawn_calls(promise: StatedPromise, seed: int, test: str, of_file: Sequence[int] = ()) -> list[DrawnCall]:
    """Returns all calls of a run with this seed, in the order in which they are judged.

    of_file: numbers that stand in the file; the last calls have sizes around them. The other calls are the same for any
    file.
    """
    numbers = random.Random(seed_for(seed, test, "calls"))
    drafts = [draft for stratum in STRATA for draft in stratum(promise, numbers)]
    drafts += [Draft()] * max(LEAST_MIXED, MOST_CALLS - len(drafts))
    calls = list(_calls_of(promise, drafts, numbers))
    if promise.gpus:
        gpus = cycle(_of_each_gpu(numbers))
        calls = [replace(call, constants=call.constants | next(gpus)) for call in calls]
    numbers.shuffle(calls)
    around = random.Random(seed_for(seed, test, "around"))
    calls += _around_numbers(promise, of_file, around) + _with_lengths(promise, of_file, around)
    return [replace(call, number=number) for number, call in enumerate(calls, 1)]


def _of_each_gpu(numbers: random.Random) -> list[dict[str, int]]:
    """Returns what a host function is told of each GPU, in any order, and then as often nothing but what the call's
    blocks say. The first calls are those with the most tiles, more than any GPU has multiprocessors."""
    capabilities = numbers.sample(sorted(GPUS), len(GPUS))
    return [{CAPABILITY: one, MULTIPROCESSORS: GPUS[one]} for one in capabilities] + [{}] * len(GPUS)


def table_of(promise: StatedPromise, numbers: random.Random) -> Covering:
    """Returns the table of this promise's calls, before its first row."""
    return Covering(_axes(promise, numbers), _weight, numbers)


def _axes(promise: StatedPromise, numbers: random.Random) -> dict[Axis, list]:
    """Returns the axes of the table, each with all values that a call may have there."""
    axes: dict[Axis, list] = {DTYPE: list(promise.dtypes), BLOCKS: list(range(1 + len(promise.blocks)))}
    axes |= {("size", name): _classes(size, promise, numbers) for name, size in promise.sizes.items()}
    axes |= {("layout", name): list(argument.families) for name, argument in promise.arguments.items()}
    return axes | {("kind", name): list(argument.values) for name, argument in promise.arguments.items()}


def _classes(size: Sizes, promise: StatedPromise, numbers: random.Random) -> list[str]:
    """Returns the names of a size's classes that fit the file's own block, or a block that a call sets."""
    blocks = {size.block, *(constants.get(size.name, size.block) for constants in promise.blocks)}
    return list(dict.fromkeys(name for block in sorted(blocks) for name in size.classes(numbers, block)))


def _weight(one: Cell, other: Cell) -> int:
    """Returns how much it matters that these cells meet. Integers are of one kind, whatever is promised of floats."""
    (axis, value), (other_axis, met) = one, other
    named = {axis[0]: value, other_axis[0]: met}
    if "kind" in named and is_whole(named.get("dtype", "")):
        return 0
    if "kind" in named and named.get("size") == ONE:
        return KIND_AND_ONE
    if "kind" in named and named.get("layout") in SHARED:
        return KIND_AND_SHARED
    return WEIGHTS.get(frozenset(named), 1)


def _calls_of(promise: StatedPromise, drafts: Iterable[Draft], numbers: random.Random) -> Iterable[DrawnCall]:
    """Yields the drafts' calls. Mixed drafts come last; all past LEAST_MIXED are left out once all pairs have met."""
    table, mixed = table_of(promise, numbers), 0
    for draft in drafts:
        if draft.is_empty:
            yield _call(promise, draft, _last_of_each(table, draft.row), numbers)
            continue
        mixed += not draft.row
        if mixed > LEAST_MIXED and not table.open_pairs:
            return
        yield _call(promise, draft, _with_fitting_blocks(promise, draft, table.complete(draft.row)), numbers)


def _with_fitting_blocks(promise: StatedPromise, draft: Draft, row: Row) -> Row:
    """Returns the row with other blocks where its own leave a size without its class: no multiple of 16 lies between
    multiples of a block of 16."""
    own = row[BLOCKS]
    others = [place for place in range(1 + len(promise.blocks)) if BLOCKS not in draft.row and place != own]
    return next((changed for place in (own, *others) if _fits(promise, changed := row | {BLOCKS: place})), row)


def _fits(promise: StatedPromise, row: Row) -> bool:
    constants = ({}, *promise.blocks)[row[BLOCKS]]
    return all(
        row["size", name] in size.classes(random.Random(0), constants.get(size.name, size.block))
        for name, size in promise.sizes.items()
        if row["size", name]
    )


def _last_of_each(table: Covering, row: Row) -> Row:
    """Returns the row with the last value, the most unusual, on each axis that `row` leaves open."""
    return {axis: values[-1] for axis, values in table.axes.items()} | row


def _call(promise: StatedPromise, draft: Draft, row: Row, numbers: random.Random) -> DrawnCall:
    constants = ({}, *promise.blocks)[row[BLOCKS]]
    sizes = dict(draft.sizes)
    for name, size in promise.sizes.items():
        if name not in sizes:
            sizes[name] = size.of_class(row["size", name], numbers, constants.get(size.name, size.block))
    layouts, values = dict(draft.layouts), {}
    for name, argument in promise.arguments.items():
        if name not in layouts:
            layouts[name] = row["layout", name](numbers, len(argument.shape))
        values[name] = row["kind", name]
    shared = draft.same, draft.parts, draft.places
    return with_numbers(DrawnCall(0, sizes, row[DTYPE], layouts, values, constants, *shared), numbers)


# ---- strata ----------------------------------------------------------------------------------------------------------


def _several(promise: StatedPromise) -> Row:
    """Returns a row with sizes of several blocks, where a size may be that large, and with the file's own blocks."""
    sizes = {("size", name): _largest_class(size) for name, size in promise.sizes.items()}
    return sizes | {BLOCKS: 0}


def _largest_class(size: Sizes) -> str:
    classes = size.classes(random.Random(0), size.block)
    return SEVERAL if SEVERAL in classes else [name for name in classes if name != ONE or len(classes) == 1][-1]


def _in_family(promise: StatedPromise, family: Family) -> Row:
    """Returns a row in which each argument has this family of layouts, if it may have it."""
    return {("layout", name): family for name, argument in promise.arguments.items() if family in argument.families}


def _ordinary(promise: StatedPromise) -> Row:
    return {("kind", name): argument.values[0] for name, argument in promise.arguments.items()}


def _kinds(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns for each kind of values a draft in which all arguments have values of this kind, in the dtype that shows
    most.

    The blocks are the first that the test states: they are small, so that there are many of them. With ordinary values
    sizes are one past several blocks: the element alone in its block weighs little among all others.
    """
    most = max(len(argument.values) for argument in promise.arguments.values())
    row = _several(promise) | {DTYPE: promise.dtypes[0], BLOCKS: min(1, len(promise.blocks))}
    drafts = [
        Draft(row | {("kind", name): _in_turn(argument, turn) for name, argument in promise.arguments.items()})
        for turn in range(most)
    ]
    return [replace(drafts[0], row=drafts[0].row | _one_past_several(promise)), *drafts[1:]]


def _one_past_several(promise: StatedPromise) -> Row:
    """Returns a row with sizes one past several blocks, where a size may be that large in the first blocks stated."""
    constants = ({}, *promise.blocks)[min(1, len(promise.blocks))]
    blocks = {name: constants.get(size.name, size.block) for name, size in promise.sizes.items()}
    return {
        ("size", name): PAST
        for name, size in promise.sizes.items()
        if PAST in size.classes(random.Random(0), blocks[name])
    }


def _in_turn(argument: Promised, turn: int) -> Kind:
    return argument.values[turn % len(argument.values)]


def _alike(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns drafts whose arguments all have the same strides, unlike the strides of a contiguous tensor."""
    arguments = promise.arguments.values()
    common = [family for family in HOLES_ALIKE if all(family in argument.families for argument in arguments)]
    drafts = []
    for family in common if len(promise.arguments) > 1 else ():
        state = numbers.randrange(1 << 30)
        layouts = {n: family(random.Random(state), len(argument.shape)) for n, argument in promise.arguments.items()}
        row = _several(promise) | _in_family(promise, family) | _ordinary(promise)
        drafts.append(Draft(row, layouts=layouts))
    return drafts


def _single(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns for each size a draft in which it is 1 and strides are unusual: one row, or column, of a larger
    matrix."""
    row = _several(promise) | _in_family(promise, drawn_layouts.sparse)
    return [Draft(row | {("size", name): ONE}) for name, size in promise.sizes.items() if not size.only]


def _shared(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns drafts with inputs that see elements twice, in sizes large enough to make a difference."""
    found = [family for family in SHARED if any(family in argument.families for argument in promise.arguments.values())]
    return [Draft(_several(promise) | _in_family(promise, family)) for family in found]


def _empty(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns for each size that may be 0 a draft in which it is; the others are near the largest that they usually
    are, since nothing is computed."""
    row = _several(promise) | _in_family(promise, drawn_layouts.contiguous)
    drafts = []
    for name, size in promise.sizes.items():
        if not size.least:
            others = {n: of.fitting(numbers.randint(19 * of.most // 20, of.most)) for n, of in promise.sizes.items()}
            drafts.append(Draft(row, sizes=others | {name: 0}, is_empty=True))
    return drafts


def _large(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns for each size that is to be large once a draft in which it is, and in which all others are small enough.
    Ordinary values show best which digits are lost on the way."""
    drafts = []
    for name, stated in promise.sizes.items():
        if stated.once:
            size = numbers.randint(9 * stated.once // 10, stated.once)
            room = max(2, min(SMALL, MOST_ELEMENTS // size))
            sizes = {n: other.fitting(numbers.randint(room // 2 + 1, room)) for n, other in promise.sizes.items()}
            row = _without_sizes(promise) | _ordinary(promise) | {BLOCKS: 0}
            drafts.append(Draft(row, sizes=sizes | {name: size}))
    return drafts


def _empty_blocks(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns for each size that blocks divide a draft with many small blocks, as many as the largest call has. Half of
    them hold one number alone, such as -inf, so code that joins the results of blocks meets several such blocks."""
    drafts = []
    for name, stated in promise.sizes.items():
        block = promise.blocks[0].get(stated.name, 0) if promise.blocks else 0
        kinds = _half_alike(promise, name)
        if stated.limit and block and kinds:
            size = block * min(stated.limit // stated.block, MANY_BLOCKS) - numbers.randint(1, SMALL)
            sizes = {other: of_other.fitting(2) for other, of_other in promise.sizes.items()} | {name: size}
            row = _without_sizes(promise) | _in_family(promise, drawn_layouts.contiguous) | {BLOCKS: 1}
            drafts.append(Draft(row | {axis: fitting[0] for axis, fitting in kinds.items()}, sizes=sizes))
    return drafts


def _half_alike(promise: StatedPromise, name: str) -> Row:
    """Returns, for each argument with rows of this size, the kinds of values in which half of a row is one number."""
    alike = {
        ("kind", argument): [kind for kind in one.values if callable(kind) and _is_half_alike(kind, len(one.shape))]
        for argument, one in promise.arguments.items()
        if one.shape[-1:] == (name,)
    }
    return {axis: kinds for axis, kinds in alike.items() if kinds}


def _is_half_alike(kind: Callable, rank: int) -> bool:
    return any(step[0] == "leading" for step in kind(*[2] * rank).steps)


def _around_numbers(promise: StatedPromise, of_file: Sequence[int], numbers: random.Random) -> list[DrawnCall]:
    """Returns calls with a size that is a number of the file, or 1 less or more: a rule of the file may begin or end
    there.

    The size is no larger than the sizes of other calls that are carried out in full.
    """
    places = [
        (name, size)
        for name, stated in promise.sizes.items()
        for number in of_file
        if stated.block < number and not stated.only
        and stated.least <= (size := number + numbers.choice(PAST_A_NUMBER)) <= carried_out(stated)
    ]  # fmt: skip
    table, others = table_of(promise, numbers), max(1, len(promise.sizes) - 1)
    calls = []
    for name, size in numbers.sample(places, min(MOST_AROUND, len(places))):
        room = max(1, min(SMALL, int((MOST_ELEMENTS / size) ** (1 / others))))
        sizes = {n: stated.fitting(numbers.randint(1, min(room, stated.most))) for n, stated in promise.sizes.items()}
        sizes[name] = size
        draft = Draft(_without_sizes(promise) | {BLOCKS: _blocks_for(promise, sizes)}, sizes=sizes)
        calls.append(_call(promise, draft, table.complete(draft.row), numbers))
    return calls


def _with_lengths(promise: StatedPromise, of_file: Sequence[int], numbers: random.Random) -> list[DrawnCall]:
    """Returns a call whose sequences are as long as numbers of the file, or 1 less or more: no size says a length, and
    code that reads it may begin another rule there."""
    kinds = {name: one.values[-1] for name, one in promise.arguments.items() if isinstance(one.values[-1], OfSequences)}
    found = [number + past for number in of_file if number < LONGEST for past in (-1, 0, 1)]
    if not kinds or not found:
        return []
    lengths = tuple(numbers.sample(found, min(MOST_LENGTHS, len(found))))
    B, T, P, page = next(iter(kinds.values())).sizes
    rows = numbers.randint(2, promise.sizes[page].most)
    columns = -(-max(lengths) // rows)
    sizes = {name: one.fitting(numbers.randint(1, 2)) for name, one in promise.sizes.items()}
    sizes |= {B: len(lengths), T: columns, P: min(columns, MOST_ELEMENTS // rows), page: rows}
    row = table_of(promise, numbers).complete(_without_sizes(promise) | {BLOCKS: 0})
    call = _call(promise, Draft(row, sizes=sizes), row, numbers)
    return [replace(call, values=call.values | {name: replace(one, lengths=lengths) for name, one in kinds.items()})]


def _blocks_for(promise: StatedPromise, sizes: dict[str, int]) -> int:
    """Returns the place of the blocks to use: 0, the file's own; if their lanes are too many, the blocks with the
    fewest."""
    if not is_wide(promise, sizes):
        return 0
    counts = [lanes(promise, sizes, constants) for constants in ({}, *promise.blocks)]
    return counts.index(min(counts))


def is_wide(promise: StatedPromise, sizes: dict[str, int], constants: dict[str, int] | None = None) -> bool:
    """Returns whether blocks have too many lanes, in a call of these sizes, to run all its programs. constants: the
    blocks that the call sets; the file's own if it sets none."""
    return lanes(promise, sizes, constants or {}) > MOST_LANES


def lanes(promise: StatedPromise, sizes: dict[str, int], constants: dict[str, int]) -> int:
    """Returns the lanes of all blocks of the argument with the most: see lanes_of_each."""
    return max(lanes_of_each(promise, sizes, constants))


def lanes_of_each(promise: StatedPromise, sizes: dict[str, Any], constants: dict[str, int]) -> list[Any]:
    """Returns the lanes of all blocks of each argument; arrays for sizes that are arrays. `constants`: the blocks that
    the call sets.

    Along a size that no constant of the file cuts, a small block is a guess: a program may have a single element. A
    size that has few values counts as half of the largest in the file's own blocks, since a loop over many of them
    may be repeated in many programs. No program goes over all of a cache.
    """
    blocks = {
        name: constants.get(size.name, size.block if size.name or size.block > GUESSED else 1)
        for name, size in promise.sizes.items()
    }
    blocks |= {name: 1 if constants else size.block // 2 for name, size in promise.sizes.items() if size.only}
    whole = {name: -(-size // blocks[name]) * blocks[name] for name, size in sizes.items()}
    shapes = [argument.shape for argument in promise.arguments.values() if not is_cache(argument)]
    return [math.prod(length(dimension, whole) for dimension in shape) for shape in shapes]


def is_cache(argument: Promised) -> bool:
    """Returns whether the argument is a cache whose pages a table leads to."""
    return any(isinstance(kind, OfSequences) and kind.is_cache for kind in argument.values)


def carried_out(size: Sizes) -> int:
    """Returns the largest size of which all programs are run, and not only a sample."""
    return max(size.most, size.once, min(size.limit, MOST_BOUNDARY))


def _many_blocks(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns for each size that may be so large a draft with a prime number of blocks, which no grouping of them
    divides, and 3 blocks of each other size. The file's own blocks are large: there are fewer of them, and 2 of each
    other size where there are three sizes or more. In small blocks, sizes that no block cuts are left to _beyond."""
    drafts, constants = [], ({}, *promise.blocks)[-1]
    primes, others = ((17, 19, 23), 3) if constants else ((11, 13), 3 if len(promise.sizes) < 3 else 2)
    for name, size in promise.sizes.items():
        if not size.only and (size.name in constants or size.block > GUESSED if constants else size.limit):
            counts = dict.fromkeys(promise.sizes, others) | {name: numbers.choice(primes)}
            sizes = {other: _of_blocks(promise.sizes[other], n, constants, numbers) for other, n in counts.items()}
            drafts.append(Draft(_without_sizes(promise) | {BLOCKS: len(promise.blocks)}, sizes=sizes))
    return drafts


def _many_blocks_each(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns a draft with many blocks of each size that blocks cut: programs far from both ends of the grid in all
    directions at once. It has the blocks with the fewest lanes; the file's own are large: there are fewer of them.
    Other sizes are 1 or 2."""
    place, constants = smallest_blocks(promise)
    least, most = (14, 17) if constants else (6, 8)
    is_cut = {name: one.name in constants or one.block > GUESSED for name, one in promise.sizes.items() if not one.only}
    if list(is_cut.values()).count(True) < 2:
        return []
    sizes = {
        name: _of_blocks(size, numbers.randint(least, most), constants, numbers)
        if is_cut.get(name, True)
        else numbers.randint(1, 2)
        for name, size in promise.sizes.items()
    }
    return [Draft(_without_sizes(promise) | _ordinary(promise) | {BLOCKS: place}, sizes=sizes)]


def _last_groups(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns, where programs take tiles in groups of rows, a draft for each number of rows that are left for the last
    group of 8, in small blocks, with many columns, and with the file's own number of rows in a group."""
    stated = enumerate(promise.blocks, 1)
    place = next((place for place, constants in stated if ROWS in constants and GROUP not in constants), 0)
    if not place or not any(GROUP in constants for constants in promise.blocks):
        return []
    constants, drafts = promise.blocks[place - 1], []
    times = 3 if any(MULTIPROCESSORS in constants for constants in promise.blocks) else 2  # a program has several tiles
    widest = numbers.randrange(1, GROUP_OF_MOST)
    for left in range(1, GROUP_OF_MOST):
        sizes = {}
        for name, size in promise.sizes.items():
            columns, rows = size.name in COLUMNS, GROUP_OF_MOST + left if size.name == ROWS else 1
            most = MANY_COLUMNS * size.most if left == widest else times * size.most
            many = numbers.randint(most // 2 + 1, most)
            sizes[name] = many if columns else _of_blocks(size, rows, constants, numbers)
        drafts.append(Draft(_without_sizes(promise) | _ordinary(promise) | {BLOCKS: place}, sizes=sizes))
    return drafts


def smallest_blocks(promise: StatedPromise) -> tuple[int, dict[str, int]]:
    """Returns the stated blocks with the fewest lanes, and their place among all; the file's own if none are stated."""
    places = range(1, 1 + len(promise.blocks))
    place = min(places, key=lambda place: sum(promise.blocks[place - 1].values()), default=0)
    return place, promise.blocks[place - 1] if place else {}


def _beyond_usual_sizes(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns drafts in which each size that has a limit beyond is larger than it usually is, all of them at once: one
    in the blocks with the fewest lanes, and one in the file's own where no block cuts any size. Of few sizes, it is one
    of the two smallest."""
    place, constants = smallest_blocks(promise)
    if sum(size.limit > size.most for size in promise.sizes.values()) < 2:
        return []
    is_cut = any(size.name in constants for size in promise.sizes.values())
    drafts = []
    for blocks in (place,) if is_cut or not place else (place, 0):
        sizes = {name: _beyond_most(size, numbers) for name, size in promise.sizes.items()}
        drafts.append(Draft(_without_sizes(promise) | _ordinary(promise) | {BLOCKS: blocks}, sizes=sizes))
    return drafts


def _beyond_most(size: Sizes, numbers: random.Random) -> int:
    if size.only:
        return numbers.choice(sorted(size.only)[:2])
    return min(numbers.randint(size.most + 1, size.most + max(2, size.most // 2)), max(size.limit, size.most))


def _of_blocks(size: Sizes, count: int, constants: dict[str, int], numbers: random.Random) -> int:
    """Returns a size that takes `count` blocks, the last of them in part; the largest size, where that is less. A size
    with few values gets any of them."""
    if size.only:
        return numbers.choice(size.only)
    block = constants.get(size.name, size.block if not constants else SMALL)
    most = size.largest if size.name or not constants else max(size.most, size.once)
    return max(1, min(count * block - numbers.randint(1, SMALL), most))


def _without_sizes(promise: StatedPromise) -> Row:
    return {("size", name): None for name in promise.sizes}


def _twice(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns drafts in which all inputs that are alike are one tensor, as self-attention hands over q, k and v, and in
    which two of several are. Where it may, it has strides of its own: a file that takes one tensor for a special case
    is wrong there as likely as anywhere."""
    alike: dict[tuple, list[str]] = defaultdict(list)
    for name, argument in promise.arguments.items():
        if is_cache(argument):  # it is never filled: each of its elements has a place of its own
            alike[len(argument.shape), argument.dtype, argument.families, is_cache].append(name)
        elif argument.shape and not argument.is_filled and callable(argument.values[0]):
            alike[len(argument.shape), argument.dtype, argument.families, argument.values[0]].append(name)
    row = _several(promise) | _ordinary(promise)
    drafts = []
    for names in alike.values():
        sizes, equal = _of_one_shape(promise, names)
        if len(equal) > 1:
            of_all, _ = _two_families(promise.arguments[equal[0]].families, numbers)
            chosen = {("layout", equal[0]): of_all}
            drafts.append(Draft(row | chosen, sizes=sizes, same=dict.fromkeys(equal[1:], equal[0])))
        pairs = list(combinations(equal, 2)) if len(equal) > 2 else []
        for first, second in numbers.sample(pairs, min(MOST_PAIRS, len(pairs))):
            of_pair, of_others = _two_families(promise.arguments[first].families, numbers)
            chosen = {("layout", name): of_pair if name == first else of_others for name in equal}
            drafts.append(Draft(row | chosen, sizes=sizes, same={second: first}))
    return drafts


def _two_families(families: Sequence[Family], numbers: random.Random) -> list[Family]:
    """Returns two families with other strides, of the layouts in which each element has its own place."""
    fitting = [family for family in families if family not in (*SHARED, *COMPACT)]
    return numbers.sample(fitting, 2) if len(fitting) > 1 else [families[0]] * 2


def _of_one_shape(promise: StatedPromise, names: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """Returns sizes that give as many of these arguments as may be one shape, and the arguments that have it then. A
    dimension that is a product of two sizes stays as it is."""
    shapes = {name: promise.arguments[name].shape for name in names}
    different = {dimension for of_axis in zip(*shapes.values()) if len(set(of_axis)) > 1 for dimension in of_axis}
    times = {own[0]: length(dimension, {own[0]: 1}) for dimension in different if len(own := sizes_of(dimension)) == 1}
    most = min((times[name] * promise.sizes[name].most for name in times), default=0)
    side = min(most, SMALL_SIDE) // max(times.values(), default=1) * max(times.values(), default=1)
    sizes = {name: promise.sizes[name].fitting(side // factor) for name, factor in times.items()}
    equal: dict[tuple, list[str]] = defaultdict(list)
    for name, shape in shapes.items():
        equal[tuple(length(one, sizes) if set(sizes_of(one)) <= set(sizes) else one for one in shape)].append(name)
    largest = max(equal.values(), key=len)
    return (sizes, largest) if len(largest) == len(names) else _of_one_shape(promise, largest)


def _in_one_memory(promise: StatedPromise, numbers: random.Random) -> list[Draft]:
    """Returns drafts in which an argument is a part of another argument."""
    row = _without_sizes(promise) | _ordinary(promise) | {BLOCKS: 0}
    drafts = []
    for views in shared_views(promise, numbers):
        own = {("layout", name): None for name in views.layouts}
        drafts.append(
            Draft(row | own, views.sizes, views.layouts, parts={views.part: views.whole}, places={views.part: views.at})
        )
    return drafts


STRATA = (
    _last_groups,
    _kinds,
    _alike,
    _single,
    _shared,
    _empty,
    _large,
    _many_blocks,
    _many_blocks_each,
    _beyond_usual_sizes,
    _empty_blocks,
    _twice,
    _in_one_memory,
)
