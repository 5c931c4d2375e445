"""Data sets of a cache in pages: the two caches of one call, its table of pages and its lengths, which fit together."""

from __future__ import annotations

from dataclasses import dataclass

from grader.numerics.arguments import DataOrNumber
from grader.numerics.data_sets import Data
from grader.numerics.paged_draws import HEAVY_END, KEYS, ORDINARY, SINK, VALUES, step

Paged = tuple[Data, Data, Data, Data]


def in_pages(*shape: int, lengths: tuple[int, ...], spare: int = 0, sink: bool = False) -> Paged:
    """Returns k_cache and v_cache of this shape, [P, page, heads, D], block_table [B, T] and lengths [B], both int32.

    The pages of a sequence lie anywhere in the caches. Rows that hold no key, and pages that no sequence has, are NaN;
    a row of the table holds -1 or 900001 past its sequence's last page. `spare`: columns of the table that no sequence
    needs. If there are too few pages, sequences share some. sink: with queries near 1 the first key of each sequence
    takes nearly all, and its value is 0.
    """
    P, page, *_ = shape
    T = max(1, *(-(-length // page) for length in lengths)) + spare
    return paged(shape, len(lengths), T, lengths, SINK if sink else ORDINARY)


def paged(shape: tuple[int, ...], B: int, T: int, lengths: tuple[int, ...] = (), kind: int = ORDINARY) -> Paged:
    """Returns the data sets of in_pages with B sequences and T columns; the lengths are drawn where none are given."""
    numbers = [*shape[:2], B, T, *lengths]
    longest = f"up to {max(lengths)}" if lengths else ""
    keys, values = (
        Data(shape, (step("paged rows", which, kind, *numbers),), about="in pages", together=True)
        for which in (KEYS, VALUES)
    )
    table = Data((B, T), (step("paged table", *numbers),), about="a table of pages", dtype="int32", together=True)
    long = Data((B,), (step("paged lengths", *numbers),), about=longest, dtype="int32", together=True)
    return keys, values, table, long


def pages_stated(stated: DataOrNumber) -> tuple[int, int]:
    """Returns (number of pages, rows of each) as a data set of lengths states them; (0, 0) for a number or an
    output."""
    if not isinstance(stated, Data) or not stated.steps:
        return 0, 0
    _, *numbers = stated.steps[0]
    return int(numbers[0]), int(numbers[1])


def lengths_stated(stated: DataOrNumber) -> tuple[int, ...]:
    """Returns the lengths that a data set of lengths states; () where they are drawn."""
    if not isinstance(stated, Data) or not stated.steps:
        return ()
    _, *numbers = stated.steps[0]
    return tuple(int(number) for number in numbers[4:])


@dataclass(frozen=True)
class OfSequences:
    """Kind of values: the data set of `in_pages` at this place among its four, with these lengths, or with lengths that
    are drawn. heavy_end: see HEAVY_END; of the values alone.
    """

    place: int
    sizes: tuple[str, str, str, str]  # the names of B, T, P and page
    heavy_end: bool = False
    lengths: tuple[int, ...] = ()

    @property
    def is_cache(self) -> bool:
        return self.place < 2

    @property
    def columns(self) -> str:
        """The name of T, the columns of the table."""
        return self.sizes[1]

    @property
    def page(self) -> str:
        """The name of the rows of a page."""
        return self.sizes[3]

    def within(self, sizes: dict[str, int]):
        B, T, P, page = (sizes[name] for name in self.sizes)

        def data(*shape: int) -> Data:
            rows = shape if self.is_cache else (P, page, 1, 1)
            return paged(rows, B, T, self.lengths, HEAVY_END if self.heavy_end else ORDINARY)[self.place]

        return data
