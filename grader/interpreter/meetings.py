"""Pairs of accesses of one program to the same bytes: a load before a store, or a store before a load.

A program runs in several warps on a GPU, and nothing makes a warp wait for another warp between two accesses. The lanes
of both accesses that meet at the same bytes tell whether they belong to one warp, once the layout of tiles is known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from grader.interpreter.access_log import Lanes
from grader.interpreter.access_parts import Access, Part
from grader.interpreter.buffers import Buffer
from grader.wire.messages import Meeting, Met

MOST_MEETINGS = 64  # pairs of places
MOST_NOTED = 64  # accesses of one program
MOST_PAIRS = 256  # lanes of one meeting, as many as a list may have


@dataclass(eq=False)
class _Noted:
    met: Met
    stores: bool
    item: int
    offsets: np.ndarray  # int64, by lane
    lanes: np.ndarray

    @property
    def ends(self) -> tuple[int, int]:
        return int(self.offsets[0]), int(self.offsets[-1])


@dataclass
class Meetings:
    """The accesses and meetings noted so far, of the first, the last and the middle program of each launch."""

    _told: set[int] = field(default_factory=set)
    _there: set[int] = field(default_factory=set)  # the programs of `_told` in the batch
    _launch: int = 0
    _noted: dict[tuple[int, Buffer], list[_Noted]] = field(default_factory=dict)
    _counts: Counter = field(default_factory=Counter)  # accesses noted, by program
    _pairs: dict[tuple, set[tuple[int, int]]] = field(default_factory=dict)  # of lanes, by the two accesses
    _labels: dict[tuple, Buffer] = field(default_factory=dict)

    def begin_launch(self, number: int, programs: int) -> None:
        self._launch, self._told = number, {0, programs // 2, programs - 1}
        self._noted.clear()
        self._counts.clear()

    def begin_batch(self, programs: np.ndarray) -> None:
        self._there = self._told & set(programs.tolist())

    def note(self, access: Access, part: Part, changing: np.ndarray | None = None) -> None:
        """Notes a load, or a store.

        changing: None for a load; by lane whether a store changes memory, since nothing is lost if it does not.
        """
        if access.lanes is None or not self._there:
            return
        chosen = np.isin(part.programs, list(self._there))
        chosen = chosen if changing is None else chosen & changing
        if chosen.any():
            shape = access.lanes[1][1:]
            met = Met(access.place.line, list(access.place.via), list(shape))
            numbers = _numbers(access.lanes, part)[chosen]
            offsets, programs = part.offsets[chosen], part.programs[chosen]
            for program in np.unique(programs).tolist():
                own = programs == program
                order = np.argsort(offsets[own], kind="stable")
                lanes = numbers[own][order]
                self._add(program, part, _Noted(met, changing is not None, access.item, offsets[own][order], lanes))

    def _add(self, program: int, part: Part, noted: _Noted) -> None:
        if self._counts[program] >= MOST_NOTED:
            return
        self._counts[program] += 1
        buffer = part.argument.buffer
        earlier = self._noted.setdefault((program, buffer), [])
        latest = {_key(one.met): one for one in earlier}
        for one in earlier:
            if one.stores != noted.stores and one.item == noted.item:
                self._meet(buffer, one, noted, one is latest[_key(one.met)])
        earlier.append(noted)

    def _meet(self, buffer: Buffer, first: _Noted, second: _Noted, in_one_turn: bool) -> None:
        (low, high), (other_low, other_high) = first.ends, second.ends
        if high < other_low or other_high < low:
            return
        ours, theirs = _equal(first.offsets, second.offsets)
        key = self._launch, first.stores, in_one_turn, _key(first.met), _key(second.met)
        if not ours.size or key not in self._pairs and len(self._pairs) >= MOST_MEETINGS:
            return
        self._labels[key] = buffer
        pairs = self._pairs.setdefault(key, set())
        step = -(-ours.size // MOST_PAIRS)
        for pair in zip(first.lanes[ours[::step]].tolist(), second.lanes[theirs[::step]].tolist()):
            if len(pairs) < MOST_PAIRS:
                pairs.add(pair)

    def told(self) -> list[Meeting]:
        """Returns the meetings in the order in which they were noted."""
        meetings = []
        for key, pairs in self._pairs.items():
            launch, stored_first, in_one_turn, *both = key
            first, second = (Met(line, list(via), list(shape)) for line, via, shape in both)
            lanes = [list(column) for column in zip(*sorted(pairs))]
            first.lanes, second.lanes = lanes
            load, store = (second, first) if stored_first else (first, second)
            meetings.append(Meeting(self._labels[key].label, launch, not stored_first, in_one_turn, load, store))
        return meetings


def _key(met: Met) -> tuple:
    return met.line, tuple(met.via), tuple(met.shape)


def _equal(ones: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns pairs of positions of equal values in two sorted arrays: for each value its first and last on both sides.

    Looks at no more than MOST_PAIRS values. All pairs of the lanes that share an address would be as many as the square
    of these lanes.
    """
    shared = np.intersect1d(ones, others)
    shared = shared[:: max(1, -(-shared.size // MOST_PAIRS))]
    (first, last), (other_first, other_last) = (
        (np.searchsorted(side, shared), np.searchsorted(side, shared, "right") - 1) for side in (ones, others)
    )
    pairs = np.unique(
        np.concatenate([
            np.stack([mine, theirs], 1)
            for mine in (first, last)
            for theirs in (other_first, other_last)
        ]),
        axis=0,
    )  # fmt: skip
    return pairs[:, 0], pairs[:, 1]


def _numbers(lanes: Lanes, part: Part) -> np.ndarray:
    """Returns for each lane of the part its number in the tile, counted row by row."""
    mask, shape = lanes
    size = int(np.prod(shape))
    active = np.arange(size) if mask is None else np.flatnonzero(np.broadcast_to(mask, shape))
    active = active if part.chosen is None else active[part.chosen]
    return active % max(1, int(np.prod(shape[1:])))
