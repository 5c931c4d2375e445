"""Bytes that programs move, counted as a GPU would move them: each element once per instruction and program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grader.interpreter.shadow import Units

SECTOR_BITS = 5  # 32 bytes, the least that a GPU moves between memory and a multiprocessor
OFFSET_BITS = 40  # of a key that holds a program's place and an offset


@dataclass
class Counts:
    """Bytes of one buffer, over all launches of the call; `used` and `moved` as in protocol.Traffic."""

    read: int = 0
    written: int = 0
    used: int = 0
    moved: int = 0


def is_increasing(values: np.ndarray) -> bool:
    return bool((values[1:] > values[:-1]).all())


def starts_of_runs(values: np.ndarray) -> np.ndarray:
    """Where in a 1-D array another value begins, the first place included."""
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


def _distinct(keys: np.ndarray) -> int:
    if bool((keys[1:] >= keys[:-1]).all()):
        return 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))
    return int(np.unique(keys).size)


class Turns:
    """The programs of one access: the lanes of each stand together."""

    def __init__(self, owners: np.ndarray):
        self.starts = starts_of_runs(owners)
        self.lengths = np.diff(self.starts, append=owners.size)
        self.programs = owners[self.starts]

    def keys(self, offsets: np.ndarray) -> np.ndarray:
        """int64, by lane: the place of the program, then the offset."""
        return np.repeat(np.arange(self.starts.size, dtype=np.int64) << OFFSET_BITS, self.lengths) | offsets

    @property
    def wide(self) -> np.ndarray | None:
        """By lane, whether its program has other lanes too; None: all have."""
        alone = self.lengths == 1
        return np.repeat(~alone, self.lengths) if alone.any() else None


class Groups:
    """Of a buffer: which units the groups of programs that run at the same time have read."""

    def __init__(self) -> None:
        self.seen: dict[int, np.ndarray] = {}

    def count_fresh(self, units: Units, groups: np.ndarray, size: int) -> int:
        """How many different units no program of their group has read before. `groups`: of each unit, increasing."""
        numbers = np.arange(units.start, units.stop) if isinstance(units, slice) else units
        starts = starts_of_runs(groups).tolist()
        fresh = 0
        for start, end in zip(starts, [*starts[1:], groups.size]):
            seen = self._table(int(groups[start]), size)
            new = numbers[start:end][~seen[numbers[start:end]]]
            seen[new] = True
            fresh += int(np.unique(new).size)
        return fresh

    def _table(self, group: int, size: int) -> np.ndarray:
        table = self.seen.get(group)
        if table is None or table.size < size:
            grown = np.zeros(size, bool)
            if table is not None:
                grown[: table.size] = table
            table = self.seen[group] = grown
        return table

    def refine(self, factor: int) -> None:
        self.seen = {group: np.repeat(table, factor) for group, table in self.seen.items()}

    def forget_before(self, group: int) -> None:
        """Groups that have ended."""
        self.seen = {number: table for number, table in self.seen.items() if number >= group}


def count_instruction(counts: Counts, kind: str, offsets: np.ndarray, item: int, owners: np.ndarray) -> int:
    """Adds what one load, store or atomic moves; -> bytes of its different elements. offsets: int64, by lane."""
    turns = Turns(owners)
    keys = turns.keys(offsets)
    used = item * _distinct(keys)
    if kind != "load":
        counts.written += used
    wide = turns.wide
    if wide is not None:  # a single number moves a sector however it lies
        keys = keys[wide]
    if keys.size:
        counts.used += used if wide is None else item * _distinct(keys)
        counts.moved += _distinct(keys >> SECTOR_BITS) << SECTOR_BITS
    return used
