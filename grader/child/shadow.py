"""What the memory checker remembers of each storage: who read and who wrote every part of it.

A storage is divided into units, the smallest elements that anybody has used in it. `writer` and `reader` belong to one
launch, since races are between the programs of one launch; what is initialised, and by which program last, belongs to
the whole call, so that a second kernel may read what a first one wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from grader.child.geometry import Geometry

NOBODY, SEVERAL = -1, -2  # instead of a program number
ATOMIC = -3  # a unit that only atomics have changed holds ATOMIC - p, p the last of their programs
MOST_LOCKS = 16  # lanes of an atomic that may be meant to order programs (a lock, a counter); more are data
OLD_CONTENT = -2  # in a map of writers: not written by a kernel, but initialised all the same


@dataclass
class Sight:
    """One kind of mistake in one access: where it was seen first."""

    kind: str
    position: int  # among the lanes of the access
    count: int
    other: int = NOBODY  # the other program


class Order:
    """What this program is ordered after: for each other program, everything it did until that time.

    The clock ticks at every atomic that may be a lock or a ticket. What a program did before its atomic is seen by
    those who meet it there later; what it does afterwards is not.
    """

    def __init__(self) -> None:
        self.clock = 0
        self.after: dict[int, int] = {}
        self.joins = self.publishes = True  # by the memory semantics of the atomic under way

    def begin_program(self) -> None:
        self.after = {}

    def meet(self, released: dict[int, int], program: int) -> None:
        """An atomic on a unit where `released` programs did theirs."""
        if self.joins:
            for other, until in released.items():
                self.after[other] = max(until, self.after.get(other, -1))
        if self.publishes:
            for other, until in (self.after | {program: self.clock}).items():
                released[other] = max(until, released.get(other, -1))


class Shadow:
    def __init__(self, tensor: torch.Tensor, *, name: str = "", initialised: bool = True, read_only: bool = False):
        storage = tensor.untyped_storage()
        self.kept_alive = storage  # so that no other storage takes its address
        self.base, self.size = storage.data_ptr(), storage.nbytes()
        self.unit = tensor.element_size()
        self.geometry = Geometry(tensor)  # of the tensor that gives its name to this storage
        self.name, self.parameter = name, ""
        self.read_only = read_only
        self.initialised = None if initialised else np.zeros(self.units, bool)  # None: all of it
        self.last_writer: np.ndarray | None = None  # over all launches of the call
        self.last_grid = (1, 1, 1)
        self.bytes_read = self.bytes_written = 0
        self.bytes_used = self.bytes_moved = 0  # of the instructions whose traffic is counted
        self.begin_launch()

    def begin_launch(self) -> None:
        self.writer: np.ndarray | None = None
        self.reader: np.ndarray | None = None
        self.group: np.ndarray | None = None  # the group of programs that read each unit last
        self.written = False
        self.written_at: np.ndarray | None = None  # when, by the clock that atomics tick
        self.read_at: np.ndarray | None = None
        self.released: dict[int, dict[int, int]] = {}  # unit -> what the next atomic there is ordered after

    @property
    def units(self) -> int:
        return -(-self.size // self.unit)

    @property
    def label(self) -> str:
        """The name of the entry's argument or result; for memory that only kernels see, their parameter's name."""
        return self.name or (f"scratch {self.parameter}" if self.parameter else "")

    def holds(self, address: int) -> bool:
        return self.base <= address < self.base + self.size

    # ---- units ------------------------------------------------------------------------------------------

    def units_of(self, offsets: np.ndarray, item: int) -> np.ndarray:
        """Units at these byte offsets (uint64) for elements of `item` bytes."""
        if item < self.unit:
            self._refine(item)
        units = (offsets >> np.uint64(self.unit.bit_length() - 1)).view(np.int64)
        if item > self.unit:
            units = (units[:, None] + np.arange(item // self.unit)).ravel()
        if self.writer is None:
            self.writer, self.reader = np.full(self.units, NOBODY, np.int32), np.full(self.units, NOBODY, np.int32)
        return units

    def _refine(self, unit: int) -> None:
        factor, self.unit = self.unit // unit, unit
        for name in ("initialised", "last_writer", "writer", "reader", "group", "written_at", "read_at"):
            table = getattr(self, name)
            if table is not None:
                setattr(self, name, np.repeat(table, factor)[: self.units])
        self.released = {unit * factor: programs for unit, programs in self.released.items()}

    def fill(self, tensor: torch.Tensor) -> None:
        """A torch operation initialised these elements of the storage."""
        if self.initialised is None or not tensor.numel():
            return
        if tensor.element_size() < self.unit:
            self._refine(tensor.element_size())
        step = tensor.element_size() // self.unit
        start = (tensor.data_ptr() - self.base) // self.unit
        for part in range(step):
            table = self.initialised[start + part :]
            strides = [s * step * table.itemsize for s in tensor.stride()]
            np.lib.stride_tricks.as_strided(table, tensor.shape, strides)[...] = True

    # ---- accesses ---------------------------------------------------------------------------------------

    def note_load(self, units: np.ndarray, program: int, order: Order) -> Iterator[Sight]:
        if self.written or self.initialised is not None:
            writer = self.writer[units]
            if self.initialised is not None:
                yield from _sights("uninitialised-read", (writer == NOBODY) & ~self.initialised[units])
            foreign = (writer >= 0) & (writer != program)
            yield from _races("race-read-after-write", foreign, writer, order, self.written_at, units)
        reader = self.reader[units]
        if order.clock:
            self.read_at = self._noted(self.read_at, units, order.clock)
        self.reader[units] = np.where((reader == NOBODY) | (reader == program), np.int32(program), np.int32(SEVERAL))

    def note_store(self, units: np.ndarray, program: int, order: Order) -> Iterator[Sight]:
        writer, reader = self.writer[units], self.reader[units]
        foreign = (writer >= 0) & (writer != program)
        yield from _races("race-write-write", foreign, writer, order, self.written_at, units)
        foreign = (reader != NOBODY) & (reader != program)
        yield from _races("race-write-after-read", foreign, reader, order, self.read_at, units)
        self.writer[units] = program
        if order.clock:
            self.written_at = self._noted(self.written_at, units, order.clock)
        self.written = True

    def _noted(self, times: np.ndarray | None, units: np.ndarray, clock: int) -> np.ndarray:
        times = np.zeros(self.units, np.int32) if times is None else times
        times[units] = clock
        return times

    def note_atomic(self, units: np.ndarray, program: int, order: Order) -> Iterator[Sight]:
        """Atomics of several programs are fine; an atomic after another program's plain store is not."""
        writer = self.writer[units]
        foreign = (writer >= 0) & (writer != program)
        yield from _races("race-atomic-after-write", foreign, writer, order, self.written_at, units)
        self.writer[units] = np.where(writer >= 0, writer, np.int32(ATOMIC - program))  # a plain store stays in sight
        self.written = True
        if units.size <= MOST_LOCKS:
            for unit in units.tolist():
                order.meet(self.released.setdefault(unit, {}), program)
            order.clock += 1

    def count_fresh(self, units: np.ndarray, group: int) -> int:
        """How many different units no program of this group has read before."""
        if self.group is None:
            self.group = np.full(self.units, NOBODY, np.int32)
        fresh = units[self.group[units] != group]
        self.group[fresh] = group
        return int(np.unique(fresh).size)

    # ---- the end of a launch and of the call --------------------------------------------------------------

    def end_launch(self, grid: tuple[int, int, int]) -> None:
        if self.written:
            wrote = self.writer != NOBODY
            if self.last_writer is None:
                self.last_writer = np.full(self.units, NOBODY, np.int32)
            np.copyto(self.last_writer, np.where(self.writer > NOBODY, self.writer, ATOMIC - self.writer), where=wrote)
            self.last_grid = grid
            if self.initialised is not None:
                self.initialised |= wrote
        self.begin_launch()

    def writers_of(self, tensor: torch.Tensor) -> np.ndarray:
        """For each element of a tensor on this storage the last program that wrote it."""
        if tensor.element_size() < self.unit:
            self._refine(tensor.element_size())
        table = np.full(self.units, NOBODY, np.int32) if self.last_writer is None else self.last_writer
        initialised = True if self.initialised is None else self.initialised
        table = np.where((table == NOBODY) & initialised, np.int32(OLD_CONTENT), table)
        step = tensor.element_size() // self.unit
        start = (tensor.data_ptr() - self.base) // self.unit
        strides = [s * step * table.itemsize for s in tensor.stride()]
        return np.lib.stride_tricks.as_strided(table[start:], tensor.shape, strides)


def _sights(kind: str, bad: np.ndarray, others: np.ndarray | None = None) -> Iterator[Sight]:
    if bad.any():
        position = int(np.argmax(bad))
        yield Sight(kind, position, int(bad.sum()), NOBODY if others is None else int(others[position]))


def _races(
    kind: str, bad: np.ndarray, others: np.ndarray, order: Order, times: np.ndarray | None, units: np.ndarray
) -> Iterator[Sight]:
    if order.after and bad.any():  # an atomic has ordered this program after some; of SEVERAL it cannot be told
        seen = np.full(others.shape, -1, np.int32)
        for other, until in order.after.items():
            seen[others == other] = until
        when = 0 if times is None else times[units]
        bad = bad & (when > seen) & (others != SEVERAL)
    yield from _sights(kind, bad, others)
