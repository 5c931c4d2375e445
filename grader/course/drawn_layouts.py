"""Families of layouts in memory, from which drawn calls take their layouts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from grader.numerics import layouts
from grader.numerics.layouts import CONTIGUOUS, OVERLAPPING, Layout

Family = Callable[[random.Random, int], Layout]  # (numbers, rank) -> a layout of the family


def contiguous(numbers: random.Random, rank: int) -> Layout:
    return CONTIGUOUS


def begins_later(numbers: random.Random, rank: int) -> Layout:
    return CONTIGUOUS.at(numbers.choice((1, 3, 5, 7)))


def begins_at_eight(numbers: random.Random, rank: int) -> Layout:
    return CONTIGUOUS.at(numbers.choice((8, 16, 24, 40, 48)))


def every_second(numbers: random.Random, rank: int) -> Layout:
    return layouts.every(2, rank)


def every_third(numbers: random.Random, rank: int) -> Layout:
    return layouts.every(3, rank)


def sparse(numbers: random.Random, rank: int) -> Layout:
    """Returns a layout with holes in both directions, so that strides are unusual in a single row or column too."""
    return layouts.every(numbers.choice((3, 5)), rank, rows=2)


def padded(numbers: random.Random, rank: int) -> Layout:
    return layouts.padded(numbers.choice((1, 3, 5, 7, 9, 11)), rank)


def padded_by_sixteen(numbers: random.Random, rank: int) -> Layout:
    return layouts.padded(16, rank)


def transposed(numbers: random.Random, rank: int) -> Layout:
    return layouts.transposed(rank)


def transposed_padded(numbers: random.Random, rank: int) -> Layout:
    """Returns a layout of longer columns: every fourth has columns at whose beginnings wide loads are possible."""
    padding = numbers.choice((1, 3, 5, 7))
    return layouts.transposed(rank, padding, multiple=16 if padding == 7 else 1)


def padded_later(numbers: random.Random, rank: int) -> Layout:
    return layouts.padded(numbers.choice((2, 3, 6)), rank).at(numbers.choice((1, 3, 5)))


def back_to_front(numbers: random.Random, rank: int) -> Layout:
    return layouts.reversed_order(rank)


def repeated_first(numbers: random.Random, rank: int) -> Layout:
    return layouts.repeated(0, rank)


def repeated_last(numbers: random.Random, rank: int) -> Layout:
    return layouts.repeated(rank - 1, rank)


def repeated_all(numbers: random.Random, rank: int) -> Layout:
    return layouts.repeated_all(rank)


def as_if_contiguous(numbers: random.Random, rank: int) -> Layout:
    return layouts.as_if_contiguous()


def close_rows(numbers: random.Random, rank: int) -> Layout:
    """Returns a layout with the rows of a contiguous tensor, in which neighbours share elements with other rows."""
    return layouts.as_if_contiguous(numbers.choice((0, 2, 3)))


def any_order(numbers: random.Random, rank: int) -> Layout:
    """Returns a layout with three or more dimensions in an order that no other family has."""
    others = [layout.order for layout in (layouts.transposed(rank), layouts.reversed_order(rank))]
    orders = (order for order in itertools.permutations(range(rank)) if order not in others)
    return layouts.stored_as(*numbers.choice([order for order in orders if list(order) != sorted(order)]))


def aligned(numbers: random.Random, rank: int) -> Layout:
    return layouts.ALIGNED_ROWS


def aligned_later(numbers: random.Random, rank: int) -> Layout:
    """Returns aligned rows that begin at a multiple of 16 bytes in half precision, and at no multiple of 32 bytes."""
    return layouts.ALIGNED_ROWS.at(8 * numbers.choice((1, 3, 5)))


def aligned_padded(numbers: random.Random, rank: int) -> Layout:
    return layouts.padded(8 * numbers.randint(1, 3), rank, "longer rows, aligned to 8 elements", multiple=8)


def overlapping(numbers: random.Random, rank: int) -> Layout:
    return OVERLAPPING


COMPACT = (contiguous, begins_later)  # without holes, in C order
HOLES_ALIKE = (padded, every_third)


def holes(rank: int) -> tuple[Family, ...]:
    """Returns the families of layouts in which each element has its own place."""
    if rank < 2:
        return (contiguous, begins_later, every_second, every_third)[: 4 if rank else 2]
    families = (
        contiguous, begins_later, every_second, every_third, sparse, padded, padded_by_sixteen, padded_later,
        as_if_contiguous, transposed, transposed_padded,
    )  # fmt: skip
    return families if rank == 2 else (*families, any_order, back_to_front)


ALIGNED = (aligned, aligned_later, aligned_padded)
SHARED = (repeated_first, repeated_last, overlapping, close_rows, repeated_all)  # an element may be seen twice


def sharing(rank: int) -> tuple[Family, ...]:
    return SHARED if rank > 1 else SHARED[:rank]
