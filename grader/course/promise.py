"""A test file's promise: how large each size may become, how each argument may lie in memory, which dtypes and which
kinds of values there are. Drawn calls and large calls are made from it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from grader.course import drawn_layouts
from grader.course.drawn_layouts import Family
from grader.numerics.arguments import DataOrNumber
from grader.numerics.data_sets import Data, indices, normal, output, slots, whole
from grader.numerics.layouts import Layout
from grader.numerics.paged_data import OfSequences

REACH = 2**31 - 1  # elements from the first to the last of a view: what a lesson promises, as a rule
SMALL = 15  # "a few"
GPUS = {80: 108, 86: 84, 89: 142, 90: 132, 100: 148, 120: 170}  # multiprocessors of a GPU by its compute capability
NEAR = 64  # a number is near the low end of its range if it is at most this many times as large
ONE, SEVERAL, PAST = "one", "several blocks and a part", "one past several blocks"  # classes of sizes

Draw = Callable[..., DataOrNumber]  # makes a data set of a shape, as `normal` does


@dataclass(frozen=True)
class Sizes:
    """A size of a call may be anything from `least` to `most`, and once in a run comes near `once`.

    `limit`: the largest size that the lesson promises and that a sample of a call's programs can show; 0: no large
    calls. `block`: how many elements a program handles along it; `name`: the constant that says so, if there is one.
    `only`: all sizes that there are, where they are few.
    """

    most: int
    block: int
    name: str = ""
    least: int = 1
    once: int = 0
    limit: int = 0
    only: tuple[int, ...] = ()

    def classes(self, numbers: random.Random, block: int) -> dict[str, list[int]]:
        """Returns a size in elements for each class that has one. With `only`, each of its sizes is a class."""
        if self.only:
            return {str(size): [size] for size in self.only}
        several = (self.most - 1) // block
        beyond = [size for size in range(block + 2, self.most + 1) if size % block not in (0, 1, block - 1)]
        sixteens = [size for size in range(16, self.most + 1, 16) if size % block]
        halves = [size for size in range(block + block // 2, self.most + 1, block) if block % 2 == 0]
        found = {
            "a few": [numbers.randint(2, max(2, min(SMALL, self.most)))],
            "one below a block": [block - 1],
            "a block": [block],
            "one past a block": [block + 1],
            SEVERAL: beyond and [numbers.choice(beyond)],
            PAST: [numbers.randint(several // 2 + 1, several) * block + 1] if several > 1 else [],
            "a multiple of 16 and of no block": sixteens and [numbers.choice(sixteens)],
            "half a block more": halves and [numbers.choice(halves)],
            ONE: [1],
        }
        return {name: sizes for name, sizes in found.items() if sizes and 1 <= sizes[0] <= self.most}

    @property
    def largest(self) -> int:
        """The largest size of any call."""
        return max(self.most, self.once, self.limit)

    def of_class(self, wanted: str, numbers: random.Random, block: int) -> int:
        """Returns a size of this class; if none fits, a size of the first class that has one."""
        classes = self.classes(numbers, block)
        return classes.get(wanted, next(iter(classes.values())))[0]

    def fitting(self, size: int) -> int:
        """Returns this size; with `only`, the largest of its sizes that is not above it, or else the smallest."""
        below = [allowed for allowed in self.only if allowed <= size]
        return max(below) if below else min(self.only, default=size)


def upto(most: int, least: int = 1, once: int = 0, limit: int = 0, **block: int) -> Sizes:
    """Returns sizes from 1 to `most`: upto(300, BLOCK_M=64) has sizes around blocks of 64 elements unless a call sets
    BLOCK_M.

    `block=64` states a block that no constant changes. once: a larger size, which one call of a run comes near. limit:
    see Sizes.
    """
    ((name, size),) = block.items()
    return Sizes(most, size, "" if name == "block" else name, least, once, limit)


def only(*sizes: int) -> Sizes:
    """Returns the promise of these sizes and no others: only(16, 32, 64). The last size is the ordinary size."""
    return Sizes(max(sizes), max(sizes), only=sizes)


@dataclass(frozen=True)
class Promised:
    """The shapes, layouts and values that an argument may have. `shape`: names of sizes, and products, "2*N" and
    "G*N"."""

    shape: tuple[str, ...]
    families: tuple[Family, ...]
    values: tuple[Kind, ...]  # the first is the ordinary kind
    dtype: str = ""  # the argument's own, whatever the call's dtype; "": the call's
    reach: int = REACH  # elements from its first to its last; if there may be more than REACH, rows lie far apart

    @property
    def is_filled(self) -> bool:
        """True for an argument that is filled or updated: each of its elements has a place of its own."""
        return bool(self.shape) and self.families == drawn_layouts.holes(len(self.shape))

    @property
    def plain_layout(self) -> Layout:
        """The simplest layout that the argument may have."""
        return self.families[0](random.Random(0), len(self.shape))


def contiguous(*shape: str, values: Sequence[Kind] = (normal,), dtype: str = "") -> Promised:
    """Promises a contiguous tensor; it may begin later than its memory, but at a multiple of 16 bytes, as x[16:]
    does."""
    return Promised(
        shape, (drawn_layouts.contiguous, drawn_layouts.begins_at_eight), _in_each_dtype(values, dtype), dtype
    )


def aligned_rows(*shape: str, values: Sequence[Kind] = (normal,), dtype: str = "") -> Promised:
    """Promises that neighbours in a row lie side by side, and that each row begins at a multiple of 8 elements."""
    return Promised(shape, drawn_layouts.ALIGNED, _in_each_dtype(values, dtype), dtype)


def any_strides(*shape: str, values: Sequence[Kind] = (normal,), dtype: str = "", reach: int = REACH) -> Promised:
    """Promises a tensor with any strides, including strides with which elements are seen twice. reach: see Promised."""
    families = (*drawn_layouts.holes(len(shape)), *drawn_layouts.sharing(len(shape)))
    return Promised(shape, families, _in_each_dtype(values, dtype), dtype, reach)


def target(*shape: str, values: Sequence[Kind] = (output,), dtype: str = "") -> Promised:
    """Promises an argument that is filled: any strides, but each element has its own place. values: for an argument
    that is updated, the kinds of values that it has before."""
    return Promised(shape, drawn_layouts.holes(len(shape)), _in_each_dtype(values, dtype), dtype)


def _in_each_dtype(kinds: Sequence[Kind], dtype: str) -> tuple[Kind, ...]:
    """Returns the kinds; those of indices once for each dtype that indices have. dtype: the argument's own, or ""."""
    dtypes = (dtype,) if dtype else ("int32", "int64")
    each = (replace(kind, dtype=own) if isinstance(kind, Into) else kind for own in dtypes for kind in kinds)
    return tuple(dict.fromkeys(each))


@dataclass(frozen=True)
class Into:
    """Kind of values: indices into dimensions of these sizes, taken together. None of the sizes is 0."""

    sizes: tuple[str, ...]
    draw: Callable[..., Data] = indices
    dtype: str = "int32"

    def within(self, sizes: dict[str, int]) -> Draw:
        below = math.prod(sizes[name] for name in self.sizes)
        return lambda *shape: self.draw(*shape, below=below).of(self.dtype)


@dataclass(frozen=True)
class FixedNumber:
    """Kind of values: this Python number, the size with this name, or None."""

    number: float | str | None

    def within(self, sizes: dict[str, int]) -> Draw:
        return lambda: sizes[self.number] if isinstance(self.number, str) else self.number


@dataclass(frozen=True)
class Between:
    """Kind of values: a Python number in this range, another number in each call."""

    low: float
    high: float

    def given(self, numbers: random.Random) -> FixedNumber:
        """Returns a number of the range. It is whole if both ends are.

        Each power of two is as likely as any other, and in a range with 0 in it each number.
        """
        if self.low > 0:
            number = math.exp(numbers.uniform(math.log(self.low), math.log(self.high)))
        elif self.high < 0:
            number = -math.exp(numbers.uniform(math.log(-self.high), math.log(-self.low)))
        else:
            number = numbers.uniform(self.low, self.high)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return FixedNumber(round(number))
        return FixedNumber(min(max(float(f"{number:.4g}"), self.low), self.high))  # short enough to be typed again


Kind = Draw | Into | FixedNumber | Between | OfSequences  # of values of an argument


def into(*sizes: str, draw: Callable[..., Data] = indices) -> Into:
    """Returns a kind of values: with values=(into("M"),) indices into a dimension of size M, in int32 in some calls and
    in int64 in others, unless the argument has its own dtype.

    into("B", "H"): indices into a dimension of size B * H. draw: makes the data set, as `indices` does, where not all
    indices are promised: draw(12, below=300).
    """
    return Into(sizes, draw)


def slots_into(*sizes: str, nowhere: float = 0) -> Into:
    """Returns a kind of values: with values=(slots_into("P", "page"),) indices as `into`, each at most once; a share of
    `nowhere` is -1."""
    return Into(sizes, partial(slots, nowhere=nowhere))


def of_sequences(B: str, T: str, P: str, page: str) -> tuple[OfSequences, ...]:
    """Returns the kinds of values of two caches, a table and lengths, as of `in_pages`, by the names of their sizes;
    last another kind of the second cache: the value of a sequence's last key counts among many thousands."""
    kinds = tuple(OfSequences(place, (B, T, P, page)) for place in range(4))
    return *kinds, replace(kinds[1], heavy_end=True)


def one_of(*numbers: float | str) -> Promised:
    """Promises an argument that is no tensor: one of these numbers or bools; a text stands for the size of this
    name."""
    return Promised((), (drawn_layouts.contiguous,), tuple(FixedNumber(number) for number in numbers))


def between(low: float, high: float, also: Sequence[float] = ()) -> Promised:
    """Promises an argument that is no tensor: any number of this range, and both ends; in a wide range above 0 also a
    number near its low end. Numbers are whole where both ends are; else some are, as eps = 1 and softcap = 50. also:
    numbers of the range that a file may treat apart, as a window of whole blocks.

    Raises ValueError where low is not below high.
    """
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"between({low}, {high}): two numbers were expected, the smaller one first")
    near = [Between(low, NEAR * low)] if low > 0 and NEAR**2 * low < high else []
    least, most = math.ceil(low), math.floor(high)
    of_ints = [Between(least, most)] if least < most and not (isinstance(low, int) and isinstance(high, int)) else []
    own = map(FixedNumber, also)
    kinds: list[Kind] = [Between(low, high), FixedNumber(high), *near, *of_ints, *own, FixedNumber(low)]
    return Promised((), (drawn_layouts.contiguous,), tuple(kinds))


def optional(number: Promised) -> Promised:
    """Promises an argument that is None, or what `number` may be, as optional(one_of(0.5, 4.0))."""
    return replace(number, values=(FixedNumber(None), *number.values))


@dataclass(frozen=True)
class DrawnCall:
    """A call: sizes by name; the layout and the kind of values of each argument; one dtype; block sizes."""

    number: int  # in the run, from 1
    sizes: dict[str, int]
    dtype: str
    layouts: dict[str, Layout]
    values: dict[str, Kind]
    constants: dict[str, int] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)  # an argument, and the earlier argument that it is as well
    parts: dict[str, str] = field(default_factory=dict)  # an argument, and the earlier argument whose elements it sees
    places: dict[str, int] = field(default_factory=dict)  # elements from the first of that argument to such a part

    @property
    def belongs_together(self) -> bool:
        """True where sizes fit what else the call has, as the lengths of its sequences, and may not change alone."""
        stated = any(isinstance(kind, OfSequences) and kind.lengths for kind in self.values.values())
        return bool(self.same or self.parts) or stated


@dataclass(frozen=True)
class StatedPromise:
    """The promise that a test file states: see the fixture `drawn`."""

    sizes: dict[str, Sizes]
    arguments: dict[str, Promised]
    dtypes: tuple[str, ...]
    blocks: tuple[dict[str, int], ...] = ()
    gpus: bool = False  # whether some calls state a GPU of GPUS
    refuses: str = ""  # the error that a call outside of the promise raises, by its name in Python
    share: float = 1.0  # of the calls that a seed draws, this share is judged, from the first on

    def data(self, call: DrawnCall) -> tuple[DataOrNumber, ...]:
        """Returns the data sets of a call's arguments, in order. Raises TypeError for a range: see with_numbers."""
        return tuple(self._data(call, name) for name in self.arguments)

    def _data(self, call: DrawnCall, name: str) -> DataOrNumber:
        origin, promised = call.same.get(name, name), self.arguments[name]
        shape = [length(dimension, call.sizes) for dimension in promised.shape]
        kind, dtype = call.values[origin], promised.dtype or call.dtype
        if isinstance(kind, Between):
            raise TypeError(f"{name} has a range of numbers: with_numbers chooses one of them")
        if isinstance(kind, Into | FixedNumber | OfSequences):
            data = kind.within(call.sizes)(*shape)
        else:
            data = whole(*shape) if is_whole(dtype) and kind is not output else kind(*shape)
        if not isinstance(data, Data):
            return data
        data = data.of(promised.dtype) if promised.dtype else data
        same, part = call.same.get(name, ""), call.parts.get(name, "")
        return replace(data, layout=call.layouts[origin], same_as=same, part_of=part, part_at=call.places.get(name, 0))


def with_numbers(call: DrawnCall, numbers: random.Random) -> DrawnCall:
    """Returns the call with a number chosen from each range."""
    kinds = call.values.items()
    return replace(call, values={name: k.given(numbers) if isinstance(k, Between) else k for name, k in kinds})


def stated(names: list[str], dtypes: Sequence[str], options: dict) -> StatedPromise:
    """Returns the promise that the keywords of the fixture `drawn` state, for arguments of these names. Raises
    ValueError for other arguments, and for a size that is stated and not used, or the reverse."""
    options = dict(options)
    sizes, refuses = options.pop("sizes", {}), options.pop("refuses", "")
    blocks, gpus = tuple(options.pop("blocks", ())), options.pop("gpus", False)
    dtypes = options.pop("dtypes", ()) or dtypes
    share = options.pop("share", 1.0)
    if list(options) != names:
        raise ValueError(f"drawn: the arguments {', '.join(names)} were expected, in this order.")
    used = {name for promised in options.values() for dimension in promised.shape for name in sizes_of(dimension)}
    numbers = [
        kind.number for promised in options.values() for kind in promised.values if isinstance(kind, FixedNumber)
    ]
    used |= {number for number in numbers if isinstance(number, str)}
    if used != set(sizes):
        raise ValueError(f"drawn: sizes {', '.join(sorted(used ^ set(sizes)))}: stated and not used, or the reverse.")
    return StatedPromise(sizes, options, tuple(dtypes), blocks, gpus, refuses, share)


def is_whole(dtype: str) -> bool:
    """Returns whether the numbers of this dtype are whole."""
    return dtype.startswith(("int", "uint"))


def sizes_of(dimension: str) -> list[str]:
    """Returns the names of sizes in a dimension: N for "N" and "2*N", G and N for "G*N"."""
    return [factor for factor in dimension.split("*") if not factor.isdecimal()]


def length(dimension: str, sizes: dict[str, int]) -> int:
    """Returns how long a dimension is that a promise states as "N", as "2*N", or as "G*N"."""
    return math.prod(int(factor) if factor.isdecimal() else sizes[factor] for factor in dimension.split("*"))
