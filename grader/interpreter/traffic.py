"""Bytes that programs move, counted as a GPU would move them: each element once per instruction and program."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from grader.interpreter.shadow import Units

SECTOR_BITS = 5  # 32 bytes, the least that a GPU moves between memory and a multiprocessor
SECTOR = 1 << SECTOR_BITS
OFFSET_BITS = 40  # of a key that holds a program's place and an offset


SUMS = ("read", "written", "used", "moved", "asked")  # of all programs


@dataclass
class ByteCounts:
    """Bytes moved to and from one buffer, over all launches of the call.

    `used`, `moved`, `asked` and `by_one` are as in wire's Traffic.
    """

    read: int = 0
    written: int = 0
    used: int = 0
    moved: int = 0
    asked: int = 0
    by_one: int = 0
    of_programs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # read in the launch under way

    def note_readers(self, owners: np.ndarray, item: int) -> None:
        """Counts a load for each program. `owners`: the program of each lane. `item`: bytes of an element."""
        read = np.bincount(owners) * item
        self.of_programs = _grown(self.of_programs, read.size)
        self.of_programs[: read.size] += read

    def end_launch(self) -> None:
        self.by_one = max(self.by_one, int(self.of_programs.max(initial=0)))
        self.of_programs = np.zeros(0, np.int64)


def is_increasing(values: np.ndarray) -> bool:
    return bool((values[1:] > values[:-1]).all())


def starts_of_runs(values: np.ndarray) -> np.ndarray:
    """Returns the positions in a 1-D array where another value begins, the first position included."""
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


class Runs:
    """The lanes of one access by program. The lanes of each program are adjacent."""

    def __init__(self, owners: np.ndarray):
        self.starts = starts_of_runs(owners)
        self.lengths = np.diff(self.starts, append=owners.size)

    def distinct(self, values: np.ndarray) -> int:
        """Returns the number of different values, counted for each program separately. values: int64, by lane."""
        borders = self.starts[1:] - 1
        ordered = values[1:] >= values[:-1]
        ordered[borders] = True
        if not ordered.all():
            places = np.arange(self.starts.size, dtype=np.int64) << OFFSET_BITS
            return int(np.unique(np.repeat(places, self.lengths) | values).size)
        changes = values[1:] != values[:-1]
        changes[borders] = True
        return 1 + int(np.count_nonzero(changes))

    def spans(self, offsets: np.ndarray) -> np.ndarray:
        """Returns by program how far its highest offset lies above its lowest (int64)."""
        return np.maximum.reduceat(offsets, self.starts) - np.minimum.reduceat(offsets, self.starts)


def count_instruction(counts: ByteCounts, kind: str, offsets: np.ndarray, item: int, owners: np.ndarray) -> int:
    """Adds the bytes that a load, store or atomic moves to `counts`. Returns the bytes of its different elements.

    offsets: int64, in bytes, by lane.
    """
    runs = Runs(owners)
    used = item * runs.distinct(offsets)
    if kind != "load":
        counts.written += used
    close = runs.spans(offsets) + item <= SECTOR  # a few numbers, or a single number, move a sector however they lie
    if close.any():
        wide = np.repeat(~close, runs.lengths)
        offsets, owners = offsets[wide], owners[wide]
        runs = Runs(owners)
    if offsets.size:
        counts.used += item * runs.distinct(offsets)
        counts.asked += item * offsets.size
        counts.moved += runs.distinct(offsets >> SECTOR_BITS) << SECTOR_BITS
    return used


class ProgramGroups:
    """For one buffer, which units have been read by groups of programs that run at the same time."""

    def __init__(self) -> None:
        self.seen: dict[int, np.ndarray] = {}
        self.tickets = np.zeros(0, np.int32)  # by unit: scratch

    def count_fresh(self, units: Units, groups: np.ndarray, size: int) -> int:
        """Returns the number of different units that no program of their group has read before.

        `groups`: the group of each unit, increasing. `size`: the number of units in the buffer.
        """
        numbers = np.arange(units.start, units.stop) if isinstance(units, slice) else units
        starts = starts_of_runs(groups).tolist()
        return sum(
            self._fresh_of(numbers[start:end], int(groups[start]), size)
            for start, end in zip(starts, [*starts[1:], groups.size])
        )

    def _fresh_of(self, numbers: np.ndarray, group: int, size: int) -> int:
        seen = self.seen[group] = _grown(self.seen.get(group, np.zeros(0, bool)), size)
        fresh = numbers[~seen[numbers]]
        seen[fresh] = True
        self.tickets = _grown(self.tickets, size)
        own = np.arange(fresh.size, dtype=np.int32)
        self.tickets[fresh] = own  # the last of equal units stays
        return int(np.count_nonzero(self.tickets[fresh] == own))

    def refine(self, factor: int) -> None:
        self.seen = {group: np.repeat(table, factor) for group, table in self.seen.items()}

    def forget_before(self, group: int) -> None:
        """Forgets the groups below this number, which have ended."""
        self.seen = {number: table for number, table in self.seen.items() if number >= group}


def _grown(table: np.ndarray, size: int) -> np.ndarray:
    if table.size >= size:
        return table
    return np.concatenate([table, np.zeros(size - table.size, table.dtype)])
