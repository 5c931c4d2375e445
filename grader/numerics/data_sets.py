"""Named data sets, such as `normal(64, 200) - 20`: a test file states them, the run's secret seed decides their values.

A data set is a description, so a test file can be read and collected without drawing anything, and it can be handed to
another process as plain text. Values are drawn in float64 and rounded once to the dtype under test; the reference sees
the rounded values too. On a GPU, where gigabytes are drawn, the precision may be lower (`drawing_precision`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from grader.numerics import layouts
from grader.numerics.draws import CHANGES, DRAWS
from grader.numerics.layouts import CONTIGUOUS, Layout
from grader.numerics.paged_draws import Step, step
from grader.numerics.poison import poison_

# Draws whose elements are independent. ("below" puts two fixed values in, which does not matter in a large tensor.)
ONE_BY_ONE = ("normal", "uniform", "integers", "level", "whole", "below", "bits")
TOGETHER = ("slots", "paged table", "paged lengths")  # draws whose elements differ from each other, of small tensors
BY_ROWS = ("leading", "amid", "whole rows", "last row")  # changes that look at whole rows
OF_ALL = -1  # the place that gives all arguments drawn together the same seed


@dataclass(frozen=True)
class Data:
    """The description of one tensor argument: shape, values and layout in memory.

    `steps`: a draw of DRAWS, then changes of CHANGES, each a name and its numbers. No step: an output, left as poison.
    `about`: what a learner reads of the values where they are unusual. `same_as`: the argument that this argument is
    too. `part_of`: the argument whose elements this argument sees, in its own strides, from element `part_at` on of its
    memory, counted from its first element. `dtype`: the
    argument's own, whatever the dtype of the run; "" for the run's. `together`: its draw knows what other arguments of
    the call draw, as it gets the same seed. `made_by`: see `arguments.made`.
    """

    shape: tuple[int, ...]
    steps: tuple[Step, ...] = ()
    layout: Layout = CONTIGUOUS
    about: str = ""
    same_as: str = ""
    part_of: str = ""
    part_at: int = 0
    dtype: str = ""
    together: bool = False
    made_by: Callable[..., torch.Tensor] | None = None

    def __add__(self, number: float) -> Data:
        return self.then("add", number)

    def __sub__(self, number: float) -> Data:
        return self.then("add", -number)

    def __mul__(self, number: float) -> Data:
        return self.then("times", number)

    def then(self, change: str, number: float) -> Data:
        return replace(self, steps=(*self.steps, (change, float(number))))

    @property
    def is_output(self) -> bool:
        return not self.steps

    @property
    def is_shared(self) -> bool:
        """True where this argument's elements are another argument's elements."""
        return bool(self.same_as or self.part_of)

    def within(self, other: torch.Tensor) -> torch.Tensor:
        """Returns the argument, given the argument that it is, or is a part of: the same tensor, or a copy of the
        part."""
        if self.same_as:
            return other
        strides, _ = self.layout.strides(self.shape)
        view = self.shape_on(other.device, other.dtype)
        return view.copy_(other.as_strided(self.shape, strides, other.storage_offset() + self.part_at))

    def of(self, dtype: str) -> Data:
        """Returns the data set with this dtype in every run: a table in "float32" among halves, indices in "int64"."""
        return replace(self, dtype=dtype)

    def dtype_in(self, run: torch.dtype) -> torch.dtype:
        """Returns the argument's dtype in a run with this dtype."""
        return getattr(torch, self.dtype) if self.dtype else run

    @property
    def in_plain_layout(self) -> Data:
        """The same data set, contiguous and with memory of its own."""
        return replace(self, layout=CONTIGUOUS, same_as="", part_of="", part_at=0)

    def transposed(self, multiple: int = 1) -> Data:
        """Returns the same matrix, stored column by column: strides (1, M), or with columns that begin at multiples of
        a number of elements. With more dimensions, the last two are swapped."""
        return replace(self, layout=layouts.transposed(len(self.shape), multiple=multiple))

    def stored_as(self, *order: int) -> Data:
        """Returns the same tensor, its dimensions in this order in memory, the outermost first: a [B, H, S, D] view of
        [B, S, H, D] is `normal(B, H, S, D).stored_as(0, 2, 1, 3)`."""
        return replace(self, layout=layouts.stored_as(*order))

    def every_second(self) -> Data:
        """Returns the data set as every second row and column of a larger matrix: holes between all elements."""
        return replace(self, layout=layouts.every_second(len(self.shape)))

    def beside_another(self) -> Data:
        """Returns the data set at every second index of the first dimension, as if it shared a memory with another."""
        return replace(self, layout=layouts.beside_another(len(self.shape)))

    def padded(self, by: int = layouts.PADDING) -> Data:
        """Returns the data set as the first N columns of a wider matrix: holes of `by` elements between the rows."""
        name = "padded rows" if by == layouts.PADDING else ""
        return replace(self, layout=layouts.padded(by, len(self.shape), name))

    def expanded(self) -> Data:
        """Returns the data set as a row seen M times: row stride 0."""
        return replace(self, layout=layouts.EXPANDED)

    def single(self) -> Data:
        """Returns the data set as a single element, seen at every index: as torch makes the gradient of a sum."""
        return replace(self, layout=layouts.repeated_all(len(self.shape)))

    def shifted(self) -> Data:
        """Returns the data set beginning an element past the start of its memory: at no multiple of 16 bytes."""
        return replace(self, layout=layouts.SHIFTED)

    @property
    def label(self) -> str:
        size = " x ".join(map(str, self.shape)) or "one number"
        parts = [short_name(self.dtype), self.layout.name, self.about]
        first = f"element {self.part_at}" if self.part_at else "the first element"
        parts += [f"from {first} of {self.part_of} on"] if self.part_of else []
        said = f"{self.same_as} itself" if self.same_as else ", ".join(filter(None, parts))
        return f"{size} ({said})" if said else size

    @property
    def leaves_no_hole(self) -> bool:
        """True where all of the argument's memory gets a value."""
        return self.layout.fits_together and not self.is_output

    @property
    def is_one_by_one(self) -> bool:
        """True where each element could be drawn alone, as it is for tensors that no memory holds."""
        draw, *changes = self.steps or (("",),)
        return draw[0] in ONE_BY_ONE and not (self.is_shared or any(change[0] in BY_ROWS for change in changes))

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def values(self, generator: torch.Generator, precision: torch.dtype = torch.float64) -> torch.Tensor:
        """Returns the values alone: [shape], in this precision, or in int64 if they are whole; on the generator's
        device."""
        (name, *numbers), *changes = self.steps
        values = DRAWS[name](self.shape, generator, precision, *numbers)
        for change, *number in changes:
            values = CHANGES[change](values, generator, *number)
        return values

    def tensor(
        self, dtype: torch.dtype, generator: torch.Generator, precision: torch.dtype = torch.float64
    ) -> torch.Tensor:
        """Returns the argument: a view, in its layout, of a storage that is poison elsewhere. dtype: the run's."""
        view = self.shape_on(generator.device, dtype)
        self.fill(view, generator, precision)
        return view

    def fill(self, view: torch.Tensor, generator: torch.Generator, precision: torch.dtype = torch.float64) -> None:
        """Draws the values into a view of this shape and layout; an output stays as it is."""
        if self.is_output:
            return
        self._put(view, self.scaled_for(view.dtype).values(generator, precision))

    def holding(self, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Returns the argument with these values instead of the values that it draws. dtype: the run's."""
        view = self.shape_on(values.device, dtype)
        self._put(view, values)
        return view

    def _put(self, view: torch.Tensor, values: torch.Tensor) -> None:
        if self.layout.overlaps:
            _fill_overlapping(view, values)
            return
        for dimension in self.layout.repeated:
            view, values = view.narrow(dimension, 0, 1), values.narrow(dimension, 0, 1)
        view.copy_(values)

    def scaled_for(self, dtype: torch.dtype) -> Data:
        """Returns the same data set, with numbers for the steps that refer to the dtype's limits."""
        limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
        scales = {"of the largest": limits.max, "of the smallest": getattr(limits, "tiny", 1)}
        steps = tuple(
            step("times", *(number * scales[name] for number in numbers)) if name in scales else step(name, *numbers)
            for name, *numbers in self.steps
        )
        return replace(self, steps=steps)

    def shape_on(self, device: str | torch.device, dtype: torch.dtype) -> torch.Tensor:
        """Returns the argument before it gets its values, for example on device "meta", which has no memory. Its memory
        is poison, unless all of it will get values. dtype: the run's."""
        dtype = self.dtype_in(dtype)
        if self.leaves_no_hole:
            return torch.empty(self.shape, dtype=dtype, device=device)
        return _empty_view(self.shape, self.layout, dtype, device)

    def to_json(self) -> dict:
        return {"shape": self.shape, "steps": self.steps, "layout": self.layout.to_json(), "dtype": self.dtype,
                "together": self.together}  # fmt: skip

    @staticmethod
    def from_json(data: dict) -> Data:
        steps = tuple(tuple(step) for step in data["steps"])
        return Data(tuple(data["shape"]), steps, Layout.from_json(data["layout"]), dtype=data["dtype"],
                    together=data["together"])  # fmt: skip


def seed_place(stated: object, place: int) -> int:
    """Returns the number that makes an argument's seed its own: its place, or OF_ALL if it is drawn together with
    others."""
    return OF_ALL if isinstance(stated, Data) and stated.together else place


def short_name(dtype: str) -> str:
    """Returns "fp16" for "float16" and "bf16" for "bfloat16"; integers keep their names."""
    return dtype.replace("bfloat", "bf").replace("float", "fp")


def drawing_precision(dtype: torch.dtype) -> torch.dtype:
    """Returns a dtype precise enough to draw values of this dtype: in float32 they take half of the memory traffic."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _empty_view(shape: tuple[int, ...], layout: Layout, dtype: torch.dtype, device: str | torch.device) -> torch.Tensor:
    _, elements = layout.strides(shape)
    return layout.view(poison_(torch.empty(elements, dtype=dtype, device=device)), shape)


def _fill_overlapping(view: torch.Tensor, values: torch.Tensor) -> None:
    """Stores values through a view whose rows or windows overlap: the first in C order of those for a place."""
    if not values.numel():
        return
    places = torch.zeros(view.shape, dtype=torch.int64)
    for dimension, (size, stride) in enumerate(zip(view.shape, view.stride())):
        steps = torch.arange(size).mul_(stride)
        places += steps.view([-1 if other == dimension else 1 for other in range(view.dim())])
    flat, order = places.flatten().sort(stable=True)
    first = torch.cat([torch.ones(1, dtype=torch.bool), flat[1:] != flat[:-1]])
    memory = view.as_strided((int(flat[-1]) + 1,), (1,), view.storage_offset())
    memory[flat[first].to(view.device)] = values.flatten()[order[first].to(view.device)].to(view.dtype)


def generator_for(seed: int, *names: object) -> torch.Generator:
    """Returns a generator that depends on the run's seed and on the names alone, not on which tests ran before."""
    return torch.Generator().manual_seed(seed_for(seed, *names))


def seed_for(seed: int, *names: object) -> int:
    digest = hashlib.sha256(repr((seed, *names)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def normal(*shape: int) -> Data:
    """Returns standard normal values."""
    return Data(shape, (("normal",),))


def uniform(*shape: int) -> Data:
    """Returns positive values below 1: a sum grows with its length, so lost digits and dropped terms show."""
    return Data(shape, (("uniform",),))


def integers(*shape: int) -> Data:
    """Returns -1, 0 and 1: sums are exact in fp32 in any order, so the result must match to the bit."""
    return Data(shape, (("integers",),))


def one_hot(*shape: int) -> Data:
    """Returns rows with a single 1 each: a product with them copies a row, to the bit."""
    return Data(shape, (("one hot",),))


def falling(*shape: int) -> Data:
    """Returns rows that each fall from 100 to -100."""
    return Data(shape, (("falling",),))


def falling_down(*shape: int) -> Data:
    """Returns columns that each fall from 100 to -100."""
    return Data(shape, (("falling down",),))


def with_some(value: float, data: Data) -> Data:
    """Returns `data` with about a tenth of its elements replaced by `value`."""
    return data.then("with some", value)


def leading(value: float, data: Data) -> Data:
    """Returns `data` with the first half of each row replaced by `value`."""
    return data.then("leading", value)


def first_row(value: float, data: Data) -> Data:
    """Returns `data` with the first row of each matrix replaced by `value`."""
    return data.then("first row", value)


def last_row(value: float, data: Data) -> Data:
    """Returns `data` with the last row of each matrix replaced by `value`: of many rows, the end that is left out."""
    return data.then("last row", value)


def amid(value: float, data: Data) -> Data:
    """Returns `data` with the middle of each row replaced by `value`: all but the first and the last quarter."""
    return data.then("amid", value)


def last(value: float, data: Data) -> Data:
    """Returns `data` with the last element of every second row replaced by `value`."""
    return data.then("last", value)


def special(data: Data) -> Data:
    """Returns `data` with infinities, NaN and -0.0 strewn in: values that arithmetic changes and a copy must not."""
    for value in (float("inf"), float("-inf"), float("nan"), -0.0):
        data = with_some(value, data)
    return data


def unusual(*shape: int) -> Data:
    """Returns normal values with infinities, NaN and -0.0 strewn in."""
    return replace(special(normal(*shape)), about="with inf, NaN and -0.0")


def lone(*shape: int) -> Data:
    """Returns normal values, and in most rows one infinity or NaN: the first of the row, the last, or any."""
    return replace(normal(*shape).then("alone", 1), about="with one inf or NaN in a row")


def around_fp16_max(*shape: int) -> Data:
    """Returns rows with a sign each, and with sums from an eighth to four times fp16's largest number; some round just
    to it."""
    return Data(shape, (("around fp16's largest",),), about="with row sums around 65504")


def peaked(*shape: int) -> Data:
    """Returns rows with a 0 each, and exponentials of the other numbers that add up to about 1: none may be dropped."""
    return Data(shape, (("peak",),), about="one peak in a row, and a long floor")


def some_minus_infinity(*shape: int) -> Data:
    """Returns normal values with -inf in a tenth of the elements; about half of the rows hold nothing but -inf."""
    data = with_some(float("-inf"), normal(*shape)).then("whole rows", float("-inf"))
    return replace(data, about="with -inf, also in whole rows")


def large(*shape: int) -> Data:
    """Returns values as large as the dtype's largest number: a sum of two may be infinite, and a difference is not
    lost."""
    return replace(normal(*shape), about="near the largest number").then("of the largest", 0.15)


def level(*shape: int) -> Data:
    """Returns 1 everywhere."""
    return Data(shape, (("level",),))


def subnormal(*shape: int) -> Data:
    """Returns values below the smallest number that has all its digits: a kernel that flushes them to 0 loses them."""
    return replace(normal(*shape), about="below the smallest normal number").then("of the smallest", 0.3)


def whole(*shape: int) -> Data:
    """Returns whole numbers of 31 bits, for integer dtypes: fp32 does not hold them."""
    return Data(shape, (("whole",),))


def indices(*shape: int, below: int, least: int = 0) -> Data:
    """Returns whole numbers from `least` to below - 1, in int32; the first and the last occur, at different places."""
    about = f"from {least} to {below - 1}" if least else f"below {below}"
    return Data(shape, (("below", below, least) if least else ("below", below),), about=about, dtype="int32")


def lengths(*shape: int, below: int) -> Data:
    """Returns the lengths of several sequences, in int32: from 0, which occurs, to below - 1, which occurs too."""
    return indices(*shape, below=below)


def slots(*shape: int, below: int, nowhere: float = 0) -> Data:
    """Returns whole numbers from 0 to below - 1 in any order, none of them twice, in int32; 0 and the last one occur.

    -1 stands for none: a share of `nowhere` of the elements, rounded up, and all elements for which no number is left.
    """
    about = f"below {below}, some -1" if nowhere or math.prod(shape) > below else f"below {below}"
    return Data(shape, (("slots", below, nowhere),), about=about, dtype="int32")


def packed(*shape: int) -> Data:
    """Returns words of 32 random bits, in int32: half are negative, as a word is whose topmost field is large."""
    return Data(shape, (("bits",),), about="packed words", dtype="int32")


def far_below_zero(*shape: int) -> Data:
    """Returns rows that each fall from -75 to -105: in fp32 exp loses its digits between these."""
    return replace(falling(*shape) * 0.15 - 90, about="from -75 to -105")


def output(*shape: int) -> Data:
    """Returns an argument that the entry fills: poison, in any layout."""
    return Data(shape)
