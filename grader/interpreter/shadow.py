"""The record of accesses to a buffer: which program wrote and which read every part of it.

A buffer is divided into units, the smallest elements that any access to it has used. `writer` and `reader` belong to
one launch, since races are between the programs of one launch. Which units are initialised, and the last program that
wrote each, belongs to the whole call, so that a second kernel may read what a first kernel wrote.

An access comes as units (a slice, or int64 numbers) and as owners (int32): the program of each unit, in the order in
which programs take their turns, grouped by program. Many programs in one access count as if they ran one after another:
a later program finds what earlier programs left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

NOBODY, SEVERAL = -1, -2  # instead of a program number
ATOMIC = -3  # a unit that only atomics have changed holds ATOMIC - p, p the last of their programs
OLD_CONTENT = -2  # in a map of writers: initialised, but not written by a kernel
MOST_LOCKS = 16  # lanes of an atomic that may be meant to order programs (a lock, a counter); more are data
RELAXED, ACQUIRE, RELEASE, ACQUIRE_RELEASE = 1, 2, 3, 4  # orders of an atomic as the compiler numbers them

Units = slice | np.ndarray
TABLES = ("initialised", "last_writer", "writer", "reader", "written_at", "read_at")


@dataclass
class Sight:
    """A kind of mistake in one access: which of its units are wrong, and the other program of each, if there is any."""

    kind: str
    bad: np.ndarray  # bool
    others: np.ndarray | None = None  # int32


class Order:
    """The programs that the running program is ordered after, each with the time up to which it is so.

    The clock ticks at every atomic that may be a lock or a ticket. A program that meets an atomic's unit later sees
    everything that the atomic's program did before the atomic, but nothing that it did afterwards.
    """

    def __init__(self) -> None:
        self.clock = 0
        self.after: dict[int, int] = {}
        self.joins = self.publishes = True  # by the memory semantics of the atomic under way

    def begin_program(self) -> None:
        self.after = {}

    def note_semantics(self, semantics: int) -> None:
        """Sets what an atomic orders: relaxed nothing, acquire and release one side each, acquire-release both."""
        self.joins = semantics in (ACQUIRE, ACQUIRE_RELEASE)
        self.publishes = semantics in (RELEASE, ACQUIRE_RELEASE)

    def meet(self, released: dict[int, int], program: int) -> None:
        """Orders a program after the programs in `released`, which released a unit, and adds it to them.

        An acquire takes over their times; a release adds the times of this program.
        """
        if self.joins:
            for other, until in released.items():
                self.after[other] = max(until, self.after.get(other, -1))
        if self.publishes:
            for other, until in (self.after | {program: self.clock}).items():
                released[other] = max(until, released.get(other, -1))


class Shadow:
    """Tables over the units of a buffer of `size` bytes. Each table is made when it is first needed."""

    def __init__(self, size: int, unit: int, initialised: bool, fixed: bool = True):
        """Makes the record of a buffer without accesses. `unit`: bytes. `fixed`: the size stays."""
        self.size, self.unit, self.fixed = size, unit, fixed
        self.initialised: np.ndarray | None = None if initialised else np.zeros(self.count, bool)  # None: all of it
        self.last_writer: np.ndarray | None = None  # over all launches of the call
        self._forget_launch()

    def _forget_launch(self) -> None:
        self.writer: np.ndarray | None = None  # None: nobody has written yet
        self.reader: np.ndarray | None = None
        self.written_at: np.ndarray | None = None  # when, by the clock of Order
        self.read_at: np.ndarray | None = None
        self.released: dict[int, dict[int, int]] = {}  # unit -> what the next atomic there is ordered after

    @property
    def count(self) -> int:
        return -(-self.size // self.unit)

    # ---- units ---------------------------------------------------------------------------------------------------

    def refine(self, unit: int) -> None:
        """Divides units further if they are larger than `unit` bytes."""
        if unit >= self.unit:
            return
        factor, self.unit = self.unit // unit, unit
        for name in TABLES:
            table = getattr(self, name)
            if table is not None:
                setattr(self, name, np.repeat(table, factor)[: self.count])
        self.released = {unit * factor: programs for unit, programs in self.released.items()}

    def grow(self, size: int) -> None:
        self.size = size
        for name in TABLES:
            table = getattr(self, name)
            if table is not None:
                rest = np.full(self.count - table.size, _empty(name), table.dtype)
                setattr(self, name, np.concatenate([table, rest]))

    def fill(self, units: Units) -> None:
        """Marks units as initialised by the host."""
        if self.initialised is not None:
            self.initialised[units] = True

    def _noted(self, name: str, units: Units, values: np.ndarray | int) -> np.ndarray:
        """Sets the units' entries in a table, which is made if there is none yet. Returns the table."""
        table = getattr(self, name)
        if table is None:
            table = np.full(self.count, _empty(name), np.int32)
            setattr(self, name, table)
        table[units] = values
        return table

    # ---- accesses ------------------------------------------------------------------------------------------------

    def note_load(
        self, units: Units, owners: np.ndarray, distinct: bool, order: Order | None, shared: bool
    ) -> Iterator[Sight]:
        """Notes a load; yields its mistakes. `distinct`: no unit comes twice.

        `shared`: other programs may write here, so readers are noted.
        """
        writer = None if self.writer is None else self.writer[units]
        if self.initialised is not None:
            bad = ~self.initialised[units]
            yield from _sights("uninitialised-read", bad if writer is None else bad & (writer == NOBODY))
        if writer is not None:
            foreign = (writer != owners) & (writer >= 0)
            yield from self._races("race-read-after-write", foreign, writer, order, "written_at", units)
        if shared:
            self._note_readers(units, owners, distinct)
            if order is not None and order.clock:
                self._noted("read_at", units, order.clock)

    def _note_readers(self, units: Units, owners: np.ndarray, distinct: bool) -> None:
        table = self.reader
        if table is None:
            table = self._noted("reader", units, owners)
        else:
            reader = table[units]
            mixed = (reader != NOBODY) & (reader != owners)
            table[units] = np.where(mixed, np.int32(SEVERAL), owners) if mixed.any() else owners
        if distinct or isinstance(units, slice):  # a slice has no unit twice
            return
        stands = table[units]  # of several programs in this access, the last is there
        lost = (stands != owners) & (stands != SEVERAL)
        if lost.any():
            table[units[lost]] = SEVERAL

    def note_store(self, units: Units, owners: np.ndarray, distinct: bool, order: Order | None) -> Iterator[Sight]:
        """Notes a store; yields its mistakes. `distinct`: no unit comes twice."""
        twice: tuple[np.ndarray, np.ndarray] | None = None  # where another program has written, and which program
        if self.writer is not None:
            others = self.writer[units]
            foreign = (others != owners) & (others >= 0)
            if foreign.any():
                twice = foreign, others.copy()
        writer = self._noted("writer", units, owners)
        if not distinct and not isinstance(units, slice) and (writer[units] != owners).any():
            first = _first_owners(writer, units, owners)
            own = first != owners
            twice = (own, first) if twice is None else (twice[0] | own, np.where(*twice, first))
        if twice is not None:
            yield from self._races("race-write-write", *twice, order, "written_at", units)
        if self.reader is not None:
            reader = self.reader[units]
            foreign = (reader != owners) & (reader != NOBODY)
            yield from self._races("race-write-after-read", foreign, reader, order, "read_at", units)
        if order is not None and order.clock:
            self._noted("written_at", units, order.clock)

    def note_atomic(self, units: Units, owners: np.ndarray, order: Order | None) -> Iterator[Sight]:
        """Notes an atomic; yields its mistakes. Atomics of several programs are fine.

        An atomic after another program's plain store is a race.
        """
        if self.writer is None:
            self._noted("writer", units, ATOMIC - owners)
        else:
            writer = self.writer[units]
            foreign = (writer != owners) & (writer >= 0)
            yield from self._races("race-atomic-after-write", foreign, writer, order, "written_at", units)
            self.writer[units] = np.where(writer >= 0, writer, ATOMIC - owners)  # a plain store stays recorded
        if order is not None and owners.size <= MOST_LOCKS:
            numbers = range(units.start, units.stop) if isinstance(units, slice) else units.tolist()
            for unit, program in zip(numbers, owners.tolist()):
                order.meet(self.released.setdefault(unit, {}), program)
            order.clock += 1

    def _races(
        self, kind: str, bad: np.ndarray, others: np.ndarray, order: Order | None, when: str, units: Units
    ) -> Iterator[Sight]:
        if order is not None and order.after and bad.any():
            # Atomics have ordered this program after some others; for SEVERAL this is unknown.
            seen = np.full(others.shape, -1, np.int32)
            for other, until in order.after.items():
                seen[others == other] = until
            times = getattr(self, when)
            bad = bad & ((0 if times is None else times[units]) > seen) & (others != SEVERAL)
        yield from _sights(kind, bad, others)

    # ---- the end of a launch and of the call ---------------------------------------------------------------------

    def end_launch(self, number_of: Callable[[np.ndarray], np.ndarray]) -> bool:
        """Ends the launch. Returns whether it wrote anything.

        `number_of` turns program numbers into the numbers that a map of writers holds.
        """
        writer = self.writer
        if writer is not None:
            self._keep_writers(writer, number_of)
        self._forget_launch()
        return writer is not None

    def _keep_writers(self, writer: np.ndarray, number_of: Callable[[np.ndarray], np.ndarray]) -> None:
        written = writer != NOBODY
        if (writer <= ATOMIC).any():
            writer = np.where(writer <= ATOMIC, ATOMIC - writer, writer)
        writer = number_of(writer)
        if self.last_writer is None:
            self.last_writer = writer
        else:
            np.copyto(self.last_writer, writer, where=written)
        if self.initialised is not None:
            self.initialised |= written
            if self.fixed and self.initialised.all():
                self.initialised = None

    def writers(self) -> np.ndarray:
        """Returns int32 by unit: the last program that wrote it, NOBODY, or OLD_CONTENT."""
        table = np.full(self.count, NOBODY, np.int32) if self.last_writer is None else self.last_writer
        old = table == NOBODY
        if self.initialised is not None:
            old &= self.initialised
        return np.where(old, np.int32(OLD_CONTENT), table) if old.any() else table


def _first_owners(writer: np.ndarray, units: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Returns for each unit the first program of the access under way; `writer` holds the last."""
    last = writer[units]
    writer[units[::-1]] = owners[::-1]
    first = writer[units]
    writer[units] = last
    return first


def _empty(table: str) -> int:
    """Returns the entry of a table for a unit without accesses."""
    return NOBODY if table in ("writer", "reader", "last_writer") else 0


def _sights(kind: str, bad: np.ndarray, others: np.ndarray | None = None) -> Iterator[Sight]:
    if bad.any():
        yield Sight(kind, bad, others)
