"""The layout of a tensor in memory: an order of its dimensions, steps, padding, and where it begins.

A layout fits tensors of one rank. It says how a piece of memory is cut into a view; all that the view leaves out is a
hole. Numbers count elements. A tuple has an entry for each dimension; an empty tuple is the default for all of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import torch

OWN_PLACE = -1  # see Layout.columns
OFTEN = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


@dataclass(frozen=True)
class Layout:
    """A layout of a tensor in memory. `name`: what a learner reads of it; "" for a contiguous tensor.

    order: the dimensions from the outermost in memory to the innermost; the tensor's own order, if empty. steps: 3
    takes every third element along a dimension. padding: elements that memory has more than the view uses along a
    dimension. offset: elements before the first. repeated: dimensions along which the same elements are seen again,
    with stride 0. sliding: each step along dimension 0 moves on by one element, so that windows overlap. multiple: the
    length of a row in memory is a multiple of this number. columns: rows begin where those of a contiguous tensor do,
    and neighbours in a row lie this many elements apart, or, with OWN_PLACE, so far that each has a place of its own.
    """

    name: str = ""
    order: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    offset: int = 0
    repeated: tuple[int, ...] = ()
    sliding: bool = False
    multiple: int = 1
    columns: int = 1

    @property
    def fits_together(self) -> bool:
        """True where a view of this layout fills its memory: it has no hole, and no element is seen twice."""
        tight = all(step == 1 for step in self.steps) and not any(self.padding)
        plain = self.multiple == self.columns == 1
        return tight and plain and not (self.order or self.offset or self.repeated or self.sliding)

    @property
    def shares_elements(self) -> bool:
        """True where two indices may mean the same element; then nothing can be stored through the view."""
        return bool(self.repeated) or self.overlaps

    @property
    def overlaps(self) -> bool:
        """True where windows or rows overlap: an element is seen twice, and not along a dimension of stride 0 alone."""
        return self.sliding or self.columns not in (1, OWN_PLACE)

    def strides(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """Returns (the strides of a view of this shape, the number of elements of the memory that it is a view of)."""
        rank = len(shape)
        steps, padding = self.steps or (1,) * rank, self.padding or (0,) * rank
        strides, reach = [0] * rank, 1
        for dimension in reversed(self.order or range(rank)):
            if dimension in self.repeated:
                continue
            strides[dimension] = reach * steps[dimension]
            length = shape[dimension] + (shape[dimension] == 0)  # at least 1; sizes may be arrays of numbers
            reach = reach * (length * steps[dimension] + padding[dimension])
            reach = reach + -reach % self.multiple
        if self.sliding or self.columns != 1:
            strides[0 if self.sliding else -1] = 1 if self.sliding else self._between_columns(shape)
            reach = 1 + sum((size - (size != 0)) * stride for size, stride in zip(shape, strides))
        return tuple(strides), self.offset + reach

    def _between_columns(self, shape: tuple[int, ...]) -> int:
        """Returns the stride of the last dimension. With OWN_PLACE no element of a row lies where another row has one:
        the stride and the length of a row have no common factor, and there are no more rows than it is long."""
        if self.columns != OWN_PLACE:
            return self.columns
        rows, length = math.prod(shape[:-1]), shape[-1] + (shape[-1] == 0)
        if np.ndim(rows * length):  # sizes are arrays of numbers: any such stride will do
            return length * -(-rows // length) + 1
        return next(stride for stride in itertools.count(max(rows, 2)) if math.gcd(stride, length) == 1)

    def view(self, memory: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        """Returns the view of this shape into a memory of the size that `strides` tells; [elements] -> [shape]."""
        return memory.as_strided(shape, self.strides(shape)[0], self.offset)

    def at(self, offset: int) -> Layout:
        """Returns the same layout, beginning `offset` elements into its memory."""
        begin = f"{offset} elements in" if offset > 1 else "shifted by one element"
        return replace(self, offset=offset, name=f"{self.name}, {begin}" if self.name else begin)

    def to_json(self) -> list:
        return [
            self.name,
            self.order,
            self.steps,
            self.padding,
            self.offset,
            self.repeated,
            self.sliding,
            self.multiple,
            self.columns,
        ]

    @staticmethod
    def from_json(data: list) -> Layout:
        name, order, steps, padding, offset, repeated, *rest = data
        return Layout(name, tuple(order), tuple(steps), tuple(padding), offset, tuple(repeated), *rest)


CONTIGUOUS = Layout()


def _inner(rank: int, last: int, before: int, other: int) -> tuple[int, ...]:
    """Returns a number for each dimension: for the last dimension, for the dimension before it, and for all others."""
    return (*(other,) * (rank - 2), before, last)[-rank:] if rank else ()


def transposed(rank: int = 2, padding: int = 0, multiple: int = 1) -> Layout:
    """Returns a layout that swaps the last two dimensions in memory: a matrix is stored column by column, in columns
    longer than in the view by `padding` elements, and then up to the next multiple."""
    name = f"transposed, columns padded by {padding}" if padding else "transposed"
    name = f"transposed, columns aligned to {multiple} elements" if multiple > 1 else name
    order = (*range(rank - 2), rank - 1, rank - 2)
    return Layout(name, order, padding=_inner(rank, 0, padding, 0) if padding else (), multiple=multiple)


def stored_as(*order: int) -> Layout:
    """Returns a layout with the dimensions in this order in memory, the outermost first. Raises ValueError unless each
    dimension occurs once."""
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"stored_as{order}: each dimension once, from the outermost in memory to the innermost.")
    name = f"stored as {', '.join(map(str, order))}"
    return CONTIGUOUS if list(order) == sorted(order) else Layout(name, order)


def reversed_order(rank: int) -> Layout:
    """Returns a layout with all dimensions in reverse order: the first dimension lies innermost."""
    return Layout("dimensions reversed", tuple(reversed(range(rank))))


def every(step: int, rank: int = 2, rows: int = 1) -> Layout:
    """Returns a layout of every second to fifth column, or element of a vector; with `rows=2`, of every second row."""
    name = f"every {OFTEN[step]} {'element' if rank == 1 else 'column'}"
    name += f" of every {OFTEN[rows]} row" if rows > 1 else ""
    return Layout(name, steps=_inner(rank, step, rows, 1))


def padded(by: int, rank: int = 2, name: str = "", multiple: int = 1) -> Layout:
    """Returns a layout of rows longer in memory than in the view: by `by` elements, and then up to the next
    multiple."""
    return Layout(name or f"rows padded by {by}", padding=_inner(rank, by, 0, 0), multiple=multiple)


def repeated(dimension: int, rank: int = 2) -> Layout:
    """Returns a layout in which index 0 of a dimension is seen at all other indices of it too."""
    noun = {0: "row", rank - 1: "column"}.get(dimension, f"index of dimension {dimension}") if rank > 1 else "element"
    return Layout(f"one {noun}, expanded", repeated=(dimension,))


def repeated_all(rank: int) -> Layout:
    """Returns a layout of a single element, seen at every index: torch gives the gradient of a sum this layout."""
    return Layout("one element, expanded", repeated=tuple(range(rank)))


def far_apart(shape: tuple[int, ...], dimension: int, reach: int) -> Layout:
    """Returns a layout as far apart along one dimension as a memory of `reach` elements permits, and close together
    along the others."""
    step, dimensions = max(1, reach // max(1, math.prod(shape))), range(len(shape))
    order = (dimension, *(other for other in dimensions if other != dimension))
    steps = tuple(step if other == dimension else 1 for other in dimensions)
    return Layout(f"far apart along dimension {dimension}", order, steps)


def every_second(rank: int) -> Layout:
    """Returns a layout of every second index of every dimension."""
    return Layout("every second element", steps=(2,) * rank)


def as_if_contiguous(columns: int = OWN_PLACE) -> Layout:
    """Returns a layout whose strides are a contiguous tensor's, but for the last: what looks at one stride takes it for
    contiguous. columns: see Layout."""
    if columns == OWN_PLACE:
        return Layout("rows as if contiguous, columns far apart", columns=columns)
    return Layout(f"rows as if contiguous, columns {columns} apart", columns=columns)


def beside_another(rank: int) -> Layout:
    """Returns a layout of every second index of the first dimension: another tensor's indices fit in between."""
    return Layout("in turns with another tensor", steps=(2, *(1,) * (rank - 1)))


ALIGNED_ROWS = Layout("rows aligned to 8 elements", multiple=8)
OVERLAPPING = Layout("overlapping rows", sliding=True)  # row i + 1 begins one element after row i
PADDING = 13  # elements between two padded rows; odd, so that it hides behind no power of two
EXPANDED = repeated(0)
SHIFTED = CONTIGUOUS.at(1)
