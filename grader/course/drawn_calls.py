"""Calls drawn from a run's secret seed, within what a lesson promises.

A test file states a promise: how large each size may become, how each argument may lie in memory, which dtypes and
which kinds of values there are. `Promise.calls` makes about twenty calls of it. They are strata, not dice: whatever the
seed, each layout, each class of size, each dtype and each kind of value occurs in every run; the seed decides which of
them meet, and all numbers. A call is a recipe: nothing is drawn in memory here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, islice

from grader.course import drawn_layouts
from grader.course.drawn_layouts import HOLES_ALIKE, SHARED, Family
from grader.numerics.arguments import Recipe
from grader.numerics.data_sets import Data, indices, normal, output, seed_for, whole
from grader.numerics.layouts import Layout

LEAST_MIXED = 10  # calls in which everything is mixed with everything
MOST_ELEMENTS = 1 << 15  # of an argument of a call with a size that occurs once
SMALL = 15  # "a few"

Kind = Callable[..., Recipe]  # of values: a data set of a shape, as `normal` is


@dataclass(frozen=True)
class Sizes:
    """What one size of a call may be: from `least` to `most`, and once in a run near `once`.

    `limit`: the largest that the lesson promises and that a sample of a call's programs can show; 0: no large calls.
    `block`: how many elements a program handles along it; `name`: of the constant that says so, if one does.
    """

    most: int
    block: int
    name: str = ""
    least: int = 1
    once: int = 0
    limit: int = 0

    def classes(self, numbers: random.Random, block: int) -> dict[str, list[int]]:
        """Of each class above 1 a size that fits, if there is one; in elements."""
        beyond = [size for size in range(block + 2, self.most + 1) if size % block not in (0, 1, block - 1)]
        sixteens = [size for size in range(16, self.most + 1, 16) if size % block]
        found = {
            "a few": [numbers.randint(2, max(2, min(SMALL, self.most)))],
            "one below a block": [block - 1],
            "a block": [block],
            "one past a block": [block + 1],
            "several blocks and a part": beyond and [numbers.choice(beyond)],
            "a multiple of 16 and of no block": sixteens and [numbers.choice(sixteens)],
        }
        return {name: sizes for name, sizes in found.items() if sizes and 1 <= sizes[0] <= self.most} or {"one": [1]}

    def of_class(self, wanted: str, numbers: random.Random, block: int) -> int:
        """A size of this class; of any, where none of it fits."""
        classes = self.classes(numbers, block)
        return classes.get(wanted, next(iter(classes.values())))[0]


def upto(most: int, least: int = 1, once: int = 0, limit: int = 0, **block: int) -> Sizes:
    """upto(300, BLOCK_M=64): sizes from 1 to 300, around blocks of 64 elements unless a call gives BLOCK_M itself.

    `block=64` is a size that no constant changes. once: a larger size, which one call of a run comes near. limit: see
    Sizes.
    """
    ((name, size),) = block.items()
    return Sizes(most, size, "" if name == "block" else name, least, once, limit)


@dataclass(frozen=True)
class Promised:
    """What may be given for an argument: its shape by the names of its sizes, or multiples of one as "2*N"; layouts,
    kinds of values."""

    shape: tuple[str, ...]
    families: tuple[Family, ...]
    values: tuple[Kind, ...]  # the first is the ordinary one
    dtype: str = ""  # of its own, whatever that of the call

    @property
    def spread(self) -> tuple[Family, ...]:
        """The layouts that see no element twice."""
        return tuple(family for family in self.families if family not in SHARED)


def contiguous(*shape: str, values: Sequence[Kind] = (normal,), dtype: str = "") -> Promised:
    """A contiguous tensor; it may begin later than its memory does, but at a multiple of 16 bytes, as x[16:] does."""
    return Promised(shape, (drawn_layouts.contiguous, drawn_layouts.begins_at_sixteen), tuple(values), dtype)


def aligned_rows(*shape: str, values: Sequence[Kind] = (normal,), dtype: str = "") -> Promised:
    """Neighbours of a row lie side by side, and rows may be padded by 16 elements. Where the last size is a multiple of
    8, as in "8*K", each row begins at a multiple of 16 bytes."""
    families = (drawn_layouts.contiguous, drawn_layouts.begins_at_sixteen, drawn_layouts.padded_by_sixteen)
    return Promised(shape, families, tuple(values), dtype)


def any_strides(*shape: str, values: Sequence[Kind] = (normal,), dtype: str = "") -> Promised:
    """A tensor with any strides, also such that see an element twice."""
    return Promised(shape, (*drawn_layouts.holes(len(shape)), *drawn_layouts.sharing(len(shape))), tuple(values), dtype)


def target(*shape: str, values: Sequence[Kind] = (output,), dtype: str = "") -> Promised:
    """An argument that is filled: any strides, but each element has a place of its own. values: of one that is
    updated."""
    return Promised(shape, drawn_layouts.holes(len(shape)), tuple(values), dtype)


@dataclass(frozen=True)
class Into:
    """Kind of values: indices into dimensions of these sizes, taken together. No size is 0."""

    sizes: tuple[str, ...]

    def within(self, sizes: dict[str, int]) -> Kind:
        return partial(indices, below=math.prod(sizes[name] for name in self.sizes))


@dataclass(frozen=True)
class Given:
    """Kind of values: this number of Python's, or that of a size."""

    number: float | str

    def within(self, sizes: dict[str, int]) -> Kind:
        return lambda: sizes[self.number] if isinstance(self.number, str) else self.number


@dataclass(frozen=True)
class Between:
    """Kind of values: a number of Python's in this range, another one in each call."""

    low: float
    high: float

    def given(self, numbers: random.Random) -> Given:
        """Returns a number of the range: each power of two is as likely as any other."""
        number = math.exp(numbers.uniform(math.log(self.low), math.log(self.high)))
        return Given(min(max(float(f"{number:.3g}"), self.low), self.high))  # short enough to be typed again


def into(*sizes: str) -> Into:
    """values=(into("M"),): indices into a dimension of size M, in int32 unless the argument has a dtype of its own.

    into("B", "H"): into what B and H make together.
    """
    return Into(sizes)


def one_of(*numbers: float | str) -> Promised:
    """An argument that is no tensor: one of these numbers, or bools; a text stands for the size of that name."""
    return Promised((), (drawn_layouts.contiguous,), tuple(map(Given, numbers)))


def between(low: float, high: float) -> Promised:
    """An argument that is no tensor: any number of this range, and both of its ends. 0 < low."""
    return Promised((), (drawn_layouts.contiguous,), (Between(low, high), Given(low), Given(high)))


@dataclass(frozen=True)
class Call:
    """One call: sizes by name; of each argument its layout and kind of values; one dtype; block sizes."""

    number: int  # in the run, from 1
    sizes: dict[str, int]
    dtype: str
    layouts: dict[str, Layout]
    values: dict[str, Kind]
    constants: dict[str, int] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)  # an argument, and the earlier one that it is


@dataclass(frozen=True)
class Promise:
    """What a test file states: see the fixture `drawn`."""

    sizes: dict[str, Sizes]
    arguments: dict[str, Promised]
    dtypes: tuple[str, ...]
    blocks: tuple[dict[str, int], ...] = ()
    same: tuple[str, ...] = ()  # arguments that may be one and the same tensor

    def calls(self, seed: int, test: str) -> list[Call]:
        """All calls of a run with this seed, in the order in which they are judged."""
        numbers = random.Random(seed_for(seed, test, "calls"))
        drafts = []
        for stratum in (_kinds, _mixed, _alike, _single, _shared, _empty, _large, _many_blocks, _twice):
            drafts += stratum(self, numbers)
        drafts = [with_numbers(call, numbers) for call in _in_dtypes(self, drafts, numbers)]
        numbers.shuffle(drafts)
        return [replace(call, number=number) for number, call in enumerate(drafts, 1)]

    def data(self, call: Call) -> tuple[Recipe, ...]:
        """The data sets of a call's arguments, in order."""
        return tuple(self._data(call, name) for name in self.arguments)

    def _data(self, call: Call, name: str) -> Recipe:
        origin, promised = call.same.get(name, name), self.arguments[name]
        shape = [_length(dimension, call.sizes) for dimension in promised.shape]
        kind, dtype = call.values[origin], promised.dtype or call.dtype
        if isinstance(kind, Into | Given):
            data = kind.within(call.sizes)(*shape)
        else:
            data = whole(*shape) if dtype.startswith(("int", "uint")) and kind is not output else kind(*shape)
        if not isinstance(data, Data):
            return data
        data = data.of(promised.dtype) if promised.dtype else data
        return replace(data, layout=call.layouts[origin], same_as=call.same.get(name, ""))


def with_numbers(call: Call, numbers: random.Random) -> Call:
    """Returns the call with a number for each range."""
    kinds = call.values.items()
    return replace(call, values={name: k.given(numbers) if isinstance(k, Between) else k for name, k in kinds})


def stated(names: list[str], dtypes: Sequence[str], options: dict) -> Promise:
    """The promise that the keywords of the fixture `drawn` state, for arguments of these names."""
    options = dict(options)
    sizes, blocks, same = (options.pop(key, default) for key, default in (("sizes", {}), ("blocks", ()), ("same", ())))
    dtypes = options.pop("dtypes", ()) or dtypes
    if list(options) != names:
        raise ValueError(f"drawn: the arguments {', '.join(names)} were expected, in this order.")
    used = {_size_of(dimension) for promised in options.values() for dimension in promised.shape}
    numbers = [kind.number for promised in options.values() for kind in promised.values if isinstance(kind, Given)]
    used |= {number for number in numbers if isinstance(number, str)}
    if used != set(sizes):
        raise ValueError(f"drawn: sizes {', '.join(sorted(used ^ set(sizes)))}: stated and not used, or the reverse.")
    return Promise(sizes, options, tuple(dtypes), tuple(blocks), tuple(same))


def _size_of(dimension: str) -> str:
    """ "N" of "N" and of "2*N" """
    return dimension.rpartition("*")[2]


def _length(dimension: str, sizes: dict[str, int]) -> int:
    factor, _, name = dimension.rpartition("*")
    return int(factor or 1) * sizes[name]


# ---- layouts: numbers are drawn for each call ------------------------------------------------------------------------


# ---- strata ----------------------------------------------------------------------------------------------------------


def _each(options: Sequence, count: int, numbers: random.Random) -> list:
    """`count` of them in a drawn order, each as often as any other but for one."""
    order = list(options)
    numbers.shuffle(order)
    chosen = list(islice(cycle(order), count))
    numbers.shuffle(chosen)
    return chosen


def _mixed(promise: Promise, numbers: random.Random) -> list[Call]:
    """Each axis takes all its values in turn, in an order of its own: a Latin square with more than two sides."""
    arguments = promise.arguments.items()
    count = max(LEAST_MIXED, *(max(len(one.spread), len(one.values)) for _, one in arguments))
    families = {name: _each(one.spread, count, numbers) for name, one in arguments}
    kinds = {name: _each(one.values, count, numbers) for name, one in arguments}
    classes = {
        name: _each(list(one.classes(numbers, one.block)), count, numbers) for name, one in promise.sizes.items()
    }
    blocks = _each(({}, *promise.blocks), count, numbers)
    calls = []
    for n in range(count):
        sizes = {
            name: one.of_class(classes[name][n], numbers, blocks[n].get(one.name, one.block))
            for name, one in promise.sizes.items()
        }
        drawn = {name: families[name][n](numbers, len(one.shape)) for name, one in arguments}
        calls.append(Call(0, sizes, "", drawn, {name: kinds[name][n] for name, _ in arguments}, blocks[n]))
    return calls


def _in_dtypes(promise: Promise, calls: list[Call], numbers: random.Random) -> list[Call]:
    """Every kind of value meets the first dtype, which shows most, then the others; what is left evens them out."""
    used, met, given = dict.fromkeys(promise.dtypes, 0), {}, []
    for call in calls:
        kinds = tuple(call.values.values())
        turn = met[kinds[0]] = met.get(kinds[0], -1) + 1
        least = [dtype for dtype in promise.dtypes if used[dtype] == min(used.values())]
        dtype = promise.dtypes[0] if turn == 0 else numbers.choice(least)
        used[dtype] += 1
        given.append(replace(call, dtype=dtype))
    return given


def _plain(promise: Promise, numbers: random.Random, family: Family | None = None) -> Call:
    """Ordinary values and sizes; each argument in a layout of its own, or of this family where it may be."""
    drawn, kinds = {}, {}
    for name, one in promise.arguments.items():
        chosen = family if family in one.families else numbers.choice(one.families)
        drawn[name], kinds[name] = chosen(numbers, len(one.shape)), one.values[0]
    sizes = {name: one.of_class("several blocks and a part", numbers, one.block) for name, one in promise.sizes.items()}
    return Call(0, sizes, "", drawn, kinds)


def _kinds(promise: Promise, numbers: random.Random) -> list[Call]:
    """For each kind of unusual values a call whose sizes fill no block, and in which all arguments have such values."""
    most, calls = max(len(one.values) for one in promise.arguments.values()), []
    for turn in range(1, most):
        kinds = {name: one.values[turn % len(one.values)] for name, one in promise.arguments.items()}
        calls.append(replace(_plain(promise, numbers), values=kinds))
    return calls


def _alike(promise: Promise, numbers: random.Random) -> list[Call]:
    """All arguments in one layout, to the last number: their strides agree, and are those of no contiguous tensor."""
    arguments = promise.arguments.values()
    common = [family for family in HOLES_ALIKE if all(family in one.families for one in arguments)]
    calls = []
    for family in common if len(promise.arguments) > 1 else ():
        state = numbers.randrange(1 << 30)
        drawn = {n: family(random.Random(state), len(one.shape)) for n, one in promise.arguments.items()}
        calls.append(replace(_plain(promise, numbers), layouts=drawn))
    return calls


def _single(promise: Promise, numbers: random.Random) -> list[Call]:
    """For each size a call in which it is 1 and strides are odd: one row, or one column, of a larger matrix."""
    calls = [(name, _plain(promise, numbers, drawn_layouts.sparse)) for name in promise.sizes]
    return [replace(call, sizes=call.sizes | {name: 1}) for name, call in calls]


def _shared(promise: Promise, numbers: random.Random) -> list[Call]:
    """Inputs that see elements twice, as large as makes a difference, with values that show one."""
    found = [family for family in SHARED if any(family in one.families for one in promise.arguments.values())]
    return [_plain(promise, numbers, family) for family in found]


def _empty(promise: Promise, numbers: random.Random) -> list[Call]:
    """For each size that may be 0 a call in which it is."""
    calls = [
        (name, _plain(promise, numbers, drawn_layouts.contiguous))
        for name, one in promise.sizes.items()
        if not one.least
    ]
    return [replace(call, sizes=call.sizes | {name: 0}) for name, call in calls]


def _large(promise: Promise, numbers: random.Random) -> list[Call]:
    """For each size that is to be large once a call in which it is, and all others small enough."""
    calls = []
    for name, one in promise.sizes.items():
        if one.once:
            size = numbers.randint(9 * one.once // 10, one.once)
            room = max(2, min(SMALL, MOST_ELEMENTS // size))
            sizes = {other: numbers.randint(room // 2 + 1, room) for other in promise.sizes}
            calls.append(replace(_plain(promise, numbers), sizes=sizes | {name: size}))
    return calls


def _many_blocks(promise: Promise, numbers: random.Random) -> list[Call]:
    """For each size a call with a prime number of blocks, which no grouping of them divides, and two of the others."""
    calls = []
    for constants in promise.blocks[-1:]:
        for name in promise.sizes:
            counts = dict.fromkeys(promise.sizes, 2) | {name: numbers.choice((17, 19, 23))}
            sizes = {
                other: count * constants.get(promise.sizes[other].name, SMALL) - numbers.randint(1, SMALL)
                for other, count in counts.items()
            }
            calls.append(replace(_plain(promise, numbers), sizes=sizes, constants=constants))
    return calls


def _twice(promise: Promise, numbers: random.Random) -> list[Call]:
    """One tensor for several arguments."""
    if not promise.same:
        return []
    first, *others = promise.same
    return [replace(_plain(promise, numbers), same=dict.fromkeys(others, first))]
