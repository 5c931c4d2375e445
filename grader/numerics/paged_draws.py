"""Draws of sequences whose keys lie in pages: the lengths, the table of pages, and the rows of a cache.

All draws of one call get the same seed and the same numbers, so that each of them knows what the others draw: which
pages a sequence has, and so which rows of the cache hold a key. Rows without a key are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import torch

NO_PAGES = (-1, 900_001)  # what a table holds past a sequence's last page
SHARE_EMPTY = 0.15  # of drawn lengths: this share is 0
KEYS, VALUES = 0, 1  # the two caches
# Values: normal; or the first key of each sequence wins, and its value is 0; or the last key's value is so large that
# it counts among thousands of others.
ORDINARY, SINK, HEAVY_END = range(3)
SINK_KEY = 1.75  # with queries near 1 and other keys near 0
HEAVY = 8000.0  # as a value: counts among 2**17 others

Step = tuple[str, *tuple[float, ...]]  # a draw or a change by its name, and its numbers


def step(name: str, *numbers: float) -> Step:
    """Returns the step of this name with these numbers."""
    return (name, *numbers)


class On(TypedDict):
    """Keywords of torch's random functions."""

    generator: torch.Generator
    device: torch.device


def on(generator: torch.Generator) -> On:
    """Returns the keywords that let a random function of torch draw from this generator, on its device."""
    return {"generator": generator, "device": generator.device}


@dataclass(frozen=True)
class Sequences:
    """The sequences of a call. lengths: [B]; table: [B, T]; both int64. holds: [P, page], whether a row is a key of
    some sequence."""

    lengths: torch.Tensor
    table: torch.Tensor
    holds: torch.Tensor

    @property
    def last_rows(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The page and the row of the last key, for each sequence that has a key."""
        last, (_, page) = self.lengths[self.lengths > 0] - 1, self.holds.shape
        return self.table[self.lengths > 0].gather(1, last[:, None] // page)[:, 0], last % page

    @property
    def first_rows(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The page and the row of the first key, for each sequence that has a key."""
        pages = self.table[self.lengths > 0, 0]
        return pages, torch.zeros_like(pages)


def sequences(generator: torch.Generator, P: int, page: int, B: int, T: int, lengths: tuple[int, ...]) -> Sequences:
    """Returns the sequences of a call with this seed, in P pages; `lengths` are drawn where none are given.

    As long as there are enough pages, no page has two sequences, and the last page is in use; page 0, which a load with
    `other=0` leads to, is in use only if all pages are.
    """
    long = torch.tensor(lengths, device=generator.device) if lengths else _lengths(generator, page, B, T)
    needed = -(-long // page)
    count = int(needed.sum())
    pages = torch.randperm(P, **on(generator)) if count <= P else torch.randint(0, P, (count,), **on(generator))
    if 0 < count < P:  # what is in front is taken
        others = pages[(pages != 0) & (pages != P - 1)][: count - 1]
        pages = torch.cat([pages.new_tensor([P - 1]), others])[torch.randperm(count, **on(generator))]
    taken = torch.arange(T, device=generator.device) < needed[:, None]
    table = torch.tensor(NO_PAGES, device=generator.device)[torch.randint(0, 2, (B, T), **on(generator))]
    table[taken] = pages[:count]
    return Sequences(long, table, _held(table, taken, long, P, page))


def _lengths(generator: torch.Generator, page: int, B: int, T: int) -> torch.Tensor:
    """Draws lengths of up to T pages, some of them 0; one sequence, if there is any, has a key in its T-th page."""
    long = torch.randint(0, T * page + 1, (B,), **on(generator))
    long[torch.rand(B, **on(generator)) < SHARE_EMPTY] = 0
    if B and T:
        longest = torch.randint(0, B, (1,), **on(generator))
        long[longest] = (T - 1) * page + torch.randint(1, page + 1, (1,), **on(generator))
    return long


def _held(table: torch.Tensor, taken: torch.Tensor, lengths: torch.Tensor, P: int, page: int) -> torch.Tensor:
    rows = torch.arange(page, device=table.device)
    starts = torch.arange(table.shape[1], device=table.device)[:, None] * page
    valid = (starts + rows < lengths[:, None, None])[taken]  # [pages taken, page]
    most = torch.zeros((P,), dtype=torch.int64, device=table.device)
    most.scatter_reduce_(0, table[taken], valid.sum(dim=1), "amax")  # with two sequences: the longer's
    return rows < most[:, None]


def drawn_lengths(
    size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype, P: int, page: int, B: int, T: int,
    *lengths: int,
) -> torch.Tensor:  # fmt: skip
    return sequences(generator, P, page, B, T, lengths).lengths


def drawn_table(
    size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype, P: int, page: int, B: int, T: int,
    *lengths: int,
) -> torch.Tensor:  # fmt: skip
    return sequences(generator, P, page, B, T, lengths).table


def drawn_rows(
    size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype, which: int, kind: int, P: int, page: int,
    B: int, T: int, *lengths: int,
) -> torch.Tensor:  # fmt: skip
    """Returns a cache, [P, page, HK, D]: its own numbers where there is a key, and NaN elsewhere."""
    drawn = sequences(generator, P, page, B, T, lengths)
    own = torch.Generator(generator.device).manual_seed((generator.initial_seed() + 1 + which) % 2**62)
    make = torch.rand if (which, kind) == (VALUES, SINK) else torch.randn
    values = make(size, dtype=precision, generator=own, device=generator.device)
    if kind == SINK:
        values = values if which == VALUES else values.mul_(0.1)
        values[drawn.first_rows] = 0.0 if which == VALUES else SINK_KEY
    if (which, kind) == (VALUES, HEAVY_END):
        values[drawn.last_rows] = HEAVY
    return values.masked_fill_(~drawn.holds[..., None, None], torch.nan)


DRAWS_OF_PAGES: dict[str, Callable[..., torch.Tensor]] = {
    "paged lengths": drawn_lengths, "paged table": drawn_table, "paged rows": drawn_rows,
}  # fmt: skip
OF_SHAPES = {"paged lengths": 0, "paged table": 0, "paged rows": 2}  # where in a step P, page, B, T begin


def with_sequences(most: int, size: int, drawn: Step) -> Step:
    """Returns the step of a call with `size` sequences instead of `most`."""
    name, *numbers = drawn
    first = OF_SHAPES[name]
    before, (P, page, B, T), lengths = numbers[:first], numbers[first : first + 4], numbers[first + 4 :]
    fewer = [*before, P, page, size if most == B else B, T, *lengths[: size if most == B else None]]
    return step(name, *fewer)
