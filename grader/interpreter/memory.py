"""The memory that interpreted kernels see: every load, store and atomic, checked exactly, for many programs at once.

Nothing is raised: lanes that must not touch memory are left out and the kernel runs on, so one run finds all mistakes.

An access comes as flat arrays of its active lanes, grouped by program in the order of the batch: pointers (int64, see
buffers.py) and programs (int32). Program numbers count the first axis of the grid fastest, as a GPU does. The programs
of a batch are taken to run after the programs of all earlier batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from grader.interpreter.access_log import NO_OFFSET, AccessLog, AccessObserver, Lanes
from grader.interpreter.access_parts import Access, Part, conflicts, in_rounds, outside, units_of
from grader.interpreter.buffers import FILLS, SHIFT, Argument, Buffer, base_of
from grader.interpreter.findings import MOST_REPORTS, Reports, Seen, Turn
from grader.interpreter.idle_iterations import IdleIterations
from grader.interpreter.meetings import Meetings
from grader.interpreter.pipelined_loads import PipelinedLoop
from grader.interpreter.shadow import ATOMIC, NOBODY, SEVERAL, Order, Sight, Units
from grader.interpreter.traffic import ProgramGroups, count_instruction, is_increasing, starts_of_runs
from grader.interpreter.views import BufferView
from grader.ttir.module import Operation
from grader.wire.messages import Finding, LoggedAccess, LoopCount, Meeting, Traffic

APART = 1 << 42  # bytes between the pretended addresses of two buffers

Change = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (memory's content, numbers of lanes) -> new content
Together = Callable[[np.ndarray, np.ndarray, np.ndarray], None]  # memory's words; by lane its word, its number


class CheckedMemory:
    """The memory of a call's kernels. fill: a name in FILLS, for the content of lanes out of bounds."""

    def __init__(self, *, fill: str = "poison", count_traffic: bool = False, at_once: int = 1, log: bool = False):
        self.fill, self.count_traffic, self.at_once = fill, count_traffic, at_once
        self.access_log = AccessLog() if log else None
        self.observer: AccessObserver | None = self.access_log  # gets each access; for a while a Tracer may stand here
        self.meetings: Meetings | None = None  # of accesses of one program, where requested
        self.other_outside = True  # lanes out of bounds read `other`, where a load has one
        self.count_readers = count_traffic  # whether to count what each program reads
        self.buffers: list[Buffer] = []
        self.reports = Reports()
        self.idle_iterations = IdleIterations() if count_traffic else None
        self.launches = self.batches = self.accesses = 0
        self.order: Order | None = None
        self.pipelined: list[PipelinedLoop] = []  # the loops under way that begin loads ahead
        self._begin((1, 1, 1), 3, [])

    # ---- buffers, launches and batches -------------------------------------------------------------------------

    def register(self, buffer: Buffer) -> None:
        """Makes a buffer known, so that findings can name addresses in it. A launch does so for its arguments."""
        if buffer not in self.buffers:
            self.buffers.append(buffer)
            if not buffer.address:
                buffer.address = len(self.buffers) * APART

    def begin_launch(
        self, grid: tuple[int, int, int], dimensions: int, arguments: list[Argument | None], ordered: bool = False
    ) -> None:
        """Begins a launch. `arguments`: by parameter, None for numbers and null pointers.

        `dimensions`: sizes in its grid. `ordered`: each batch is one program, whose atomics may order it after others.
        """
        self.launches += 1
        self.order = Order() if ordered else None
        self._begin(grid, dimensions, arguments)
        for argument in arguments:
            if argument is not None:
                self.register(argument.buffer)
                argument.buffer.parameter = argument.buffer.parameter or argument.name.removesuffix("_ptr")

    def _begin(self, grid: tuple[int, int, int], dimensions: int, arguments: list[Argument | None]) -> None:
        self.grid, self.dimensions, self.arguments = grid, dimensions, arguments
        self.programs = self.numbers = np.zeros(0, np.int32)
        self.all_busy = False
        self.busy = np.zeros(0, bool)  # which programs of the batch, in the order of their numbers, have used memory
        self.last_use = np.zeros(0, np.int64)  # by program, the number of the access in which it last had a lane
        self.idle = self.accesses = self.batches = 0
        self.groups: dict[Buffer, ProgramGroups] = {}
        if self.meetings is not None:
            self.meetings.begin_launch(self.launches - 1, grid[0] * grid[1] * grid[2])
        self.loaded: set[Buffer] = set()  # by the launch; an atomic loads and stores
        self.stored: set[Buffer] = set()

    def begin_batch(self, programs: np.ndarray) -> None:
        """Begins a batch of programs (int32), which run side by side, in this order."""
        self._end_batch()
        self.programs, self.batches = programs, self.batches + 1
        self.numbers = np.sort(programs)
        self.busy, self.all_busy = np.zeros(programs.size, bool), False
        self.last_use = np.zeros(programs.size, np.int64)
        if self.meetings is not None:
            self.meetings.begin_batch(programs)
        if self.order is not None:
            self.order.begin_program()
        if self.groups and programs.size:
            for groups in self.groups.values():
                groups.forget_before(int(programs[0]) // self.at_once)

    def _end_batch(self) -> None:
        self.idle += self.busy.size - int(np.count_nonzero(self.busy))

    def _note_busy(self, programs: np.ndarray) -> None:
        if self.all_busy and self.idle_iterations is None:
            return
        places = np.searchsorted(self.numbers, programs[starts_of_runs(programs)])
        self.busy[places] = True
        self.all_busy = bool(self.busy.all())
        self.last_use[places] = self.accesses

    def unused_since(self, access: int) -> np.ndarray:
        """Returns for each program of the batch whether it had a lane in no access after the one of this number."""
        return (self.last_use <= access)[np.searchsorted(self.numbers, self.programs)]

    def end_launch(self) -> None:
        self._end_batch()
        self.programs, self.busy = np.zeros(0, np.int32), np.zeros(0, bool)
        for buffer in dict.fromkeys(a.buffer for a in self.arguments if a is not None):
            if buffer.shadow.end_launch(self._number_in_map):
                buffer.last_grid = self.grid
            buffer.counts.end_launch()
        self.arguments = []

    def idle_programs(self) -> int:
        """Returns the number of programs that loaded and stored nothing in the launch that has ended."""
        return self.idle

    def _number_in_map(self, programs: np.ndarray) -> np.ndarray:
        """Returns program numbers as a map of writers has them: the last axis counts fastest."""
        x, y, z = self.grid
        if (x > 1) + (y > 1) + (z > 1) < 2:
            return programs
        first, rest = programs % x, programs // x
        return np.where(programs < 0, programs, (first * y + rest % y) * z + rest // y).astype(np.int32)

    # ---- loads, stores and atomics -----------------------------------------------------------------------------

    def load(
        self, pointers: np.ndarray, item: int, operation: Operation, programs: np.ndarray, lanes: Lanes | None = None,
        rest: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Returns the content that each lane reads, as unsigned integers of `item` bytes.

        lanes: for the access log and meetings. rest: by lane, the content of a lane out of bounds, as if masked off.
        """
        out = None
        for part in self._parts(pointers, programs, access := self._access("load", item, operation, lanes)):
            self._note(part, access)
            values = part.argument.buffer.words(item)[part.index]
            if self.meetings is not None:
                self.meetings.note(access, part)
            if part.chosen is None:
                return values.copy() if isinstance(part.index, slice) else values
            out = self._content_outside(pointers.size, item, rest) if out is None else out
            out[part.chosen] = values
        return self._content_outside(pointers.size, item, rest) if out is None else out

    def _content_outside(self, size: int, item: int, rest: np.ndarray | None = None) -> np.ndarray:
        if rest is not None and self.other_outside:
            return rest.copy()
        return np.full(size * item, FILLS[self.fill], np.uint8).view(f"u{item}")

    def store(
        self, pointers: np.ndarray, raw: np.ndarray, item: int, operation: Operation, programs: np.ndarray,
        lanes: Lanes | None = None,
    ) -> None:  # fmt: skip
        """Stores `raw`: by lane, unsigned integers of `item` bytes. The last of several lanes with one address wins."""
        for part in self._parts(pointers, programs, access := self._access("store", item, operation, lanes)):
            self._note(part, access)
            values = raw if part.chosen is None else raw[part.chosen]
            words = part.argument.buffer.words(item)
            if self.meetings is not None:
                self.meetings.note(access, part, words[part.index] != values)
            words[part.index] = values
            if not part.distinct and (words[part.index] != values).any():
                lost = conflicts(part, values)
                if lost.any():
                    self._report("lane-conflict", access, part.argument, part.offsets, part.programs, lost)

    def atomic(
        self, pointers: np.ndarray, item: int, operation: Operation, programs: np.ndarray, change: Change,
        semantics: int = 1, lanes: Lanes | None = None, together: Together | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Changes memory lane by lane by `change`. Returns the content that each lane found. semantics: see shadow.py.

        together: changes all lanes in one call; used if nobody asks for what the lanes found. They then get poison.
        """
        out = self._content_outside(pointers.size, item)
        if self.order is not None:
            self.order.note_semantics(semantics)
        for part in self._parts(pointers, programs, access := self._access("atomic", item, operation, lanes)):
            self._note(part, access)
            words = part.argument.buffer.words(item)
            numbers = np.arange(pointers.size) if part.chosen is None else part.chosen
            index = np.arange(part.index.start, part.index.stop) if isinstance(part.index, slice) else part.index
            if together is not None:
                together(words, index, numbers)
                continue
            for turn in in_rounds(index, part.distinct):
                where = numbers[turn]
                old = words[index[turn]]
                out[where] = old
                words[index[turn]] = change(old, where)
        return out

    # ---- one access --------------------------------------------------------------------------------------------

    def _access(self, kind: str, item: int, operation: Operation, lanes: Lanes | None) -> Access:
        self.accesses += 1
        return Access(kind, item, operation, self.accesses, lanes)

    def _parts(self, pointers: np.ndarray, programs: np.ndarray, access: Access) -> Iterator[Part]:
        if not pointers.size:
            return
        self._note_busy(programs)
        increasing = is_increasing(pointers)
        low, high = (pointers[0], pointers[-1]) if increasing else (pointers.min(), pointers.max())
        low, high = int(low), int(high)
        if low >> SHIFT == high >> SHIFT and (argument := self._argument(low >> SHIFT)) is not None:
            part = self._part(argument, pointers, programs, low, high, increasing, access, None)
            yield from () if part is None else (part,)
        else:
            yield from self._parts_of_several(pointers, programs, access)

    def _argument(self, number: int) -> Argument | None:
        """Returns the parameter that pointers with this number were made from, None if there is none."""
        return self.arguments[number - 1] if 0 < number <= len(self.arguments) else None

    def _parts_of_several(self, pointers: np.ndarray, programs: np.ndarray, access: Access) -> Iterator[Part]:
        """Yields each parameter's lanes of an access through pointers of several parameters, or of none."""
        numbers = pointers >> SHIFT
        for number in np.unique(numbers).tolist():
            chosen = np.flatnonzero(numbers == number)
            own = pointers[chosen]
            argument = self._argument(number)
            if argument is not None:
                low, high = int(own.min()), int(own.max())
                part = self._part(argument, own, programs[chosen], low, high, is_increasing(own), access, chosen)
                if part is not None:
                    yield part
            else:  # an address that the kernel made from a number
                self._report("wild-pointer", access, None, np.zeros(own.size, np.int64), programs[chosen])

    def _part(
        self, argument: Argument, pointers: np.ndarray, programs: np.ndarray, low: int, high: int, increasing: bool,
        access: Access, chosen: np.ndarray | None,
    ) -> Part | None:  # fmt: skip
        """Returns the lanes that may touch memory, None if there are none; reports the others."""
        base, item = base_of((low >> SHIFT) - 1), access.item
        bad = outside(argument.view, pointers, base, low - base, high - base, increasing, item)
        if bad is not None:
            self._report(f"out-of-bounds-{access.kind}", access, argument, pointers - base, programs, bad)
        elif item > 1 and int(np.bitwise_or.reduce(pointers)) & (item - 1):
            bad = (pointers & (item - 1)) != 0
            self._report("misaligned", access, argument, pointers - base, programs, bad)
        if bad is None:
            part = Part(argument, pointers, programs, base, slice(0), increasing, chosen)
            part.index = self._index(part, low - base, high - base, item)
            return part
        kept = np.flatnonzero(~bad)
        if not kept.size:
            return None
        pointers, chosen = pointers[kept], kept if chosen is None else chosen[kept]
        low, high = int(pointers.min()), int(pointers.max())
        return self._part(argument, pointers, programs[kept], low, high, increasing, access, chosen)

    def _index(self, part: Part, low: int, high: int, item: int) -> Units:
        buffer = part.argument.buffer
        if part.distinct and buffer.pages is None and high - low == item * (part.pointers.size - 1):
            return slice(low // item, high // item + 1)  # contiguous
        return buffer.places(part.offsets) >> (item.bit_length() - 1)

    def _note(self, part: Part, access: Access) -> None:
        """Checks this access against earlier accesses, and records it for later accesses."""
        buffer, item = part.argument.buffer, access.item
        shadow = buffer.shadow
        if item < shadow.unit:
            self._refine(buffer, item)
        if access.kind != "store":
            self.loaded.add(buffer)
        if access.kind != "load":
            self.stored.add(buffer)
        units, owners, each = units_of(part.index, part.programs, item // shadow.unit)
        if access.kind == "load":
            shared = not buffer.read_only
            sights = shadow.note_load(units, owners, part.distinct, self.order, shared)
        elif access.kind == "store":
            sights = shadow.note_store(units, owners, part.distinct, self.order)
        else:
            sights = shadow.note_atomic(units, owners, self.order)
        for sight in sights:
            self._report_sight(sight, part, owners, each, access)
        for loop in self.pipelined:
            if access.kind != "load":
                loop.note_store(shadow, units, owners, access.place.line)
            elif (early := loop.early(shadow, units, owners, access.place.line)) is not None:
                self._report("load-ahead-of-store", access, part.argument, *self._by_unit(part, owners, each), *early)
        if access.kind != "load" and buffer.read_only:
            self._report("input-written", access, part.argument, part.offsets, part.programs)
        self._count(part, access, units, owners)
        if self.observer is not None and access.lanes is not None:
            self._write_down(self.observer, access.lanes, part, access)

    def _refine(self, buffer: Buffer, item: int) -> None:
        if buffer in self.groups:
            self.groups[buffer].refine(buffer.shadow.unit // item)
        buffer.shadow.refine(item)

    def _count(self, part: Part, access: Access, units: Units, owners: np.ndarray) -> None:
        buffer, item = part.argument.buffer, access.item
        counts, size = buffer.counts, item * part.pointers.size
        used = size
        if self.count_traffic:
            used = count_instruction(counts, access.kind, part.offsets, item, part.programs)
        elif access.kind != "load":
            counts.written += size
        if access.kind != "load":
            return
        if self.count_readers:
            counts.note_readers(part.programs, item)
        if self.count_traffic and self.at_once > 1:
            groups = self.groups.setdefault(buffer, ProgramGroups())
            fresh = groups.count_fresh(units, owners // self.at_once, buffer.shadow.count)
            used = fresh * buffer.shadow.unit
        counts.read += used

    def _write_down(self, log: AccessObserver, lanes: Lanes, part: Part, access: Access) -> None:
        mask, shape = lanes
        offsets = np.full(shape, NO_OFFSET, np.int64)
        active = np.arange(offsets.size) if mask is None else np.flatnonzero(np.broadcast_to(mask, shape))
        offsets.reshape(-1)[active if part.chosen is None else active[part.chosen]] = part.offsets
        for number, (program, row) in enumerate(zip(self.programs.tolist(), offsets.reshape(self.programs.size, -1))):
            if (row != NO_OFFSET).any():
                logged = LoggedAccess(access.kind, "", access.place.line, self.name(program), self.launches - 1)
                log.note(self._turn(number, access), logged, part.argument.buffer, row)

    # ---- reports -----------------------------------------------------------------------------------------------

    def _report_sight(self, sight: Sight, part: Part, owners: np.ndarray, each: int, access: Access) -> None:
        self._report(sight.kind, access, part.argument, *self._by_unit(part, owners, each), sight.bad, sight.others)

    @staticmethod
    def _by_unit(part: Part, owners: np.ndarray, each: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the offset and the program of each unit of an access whose lanes have `each` units."""
        return part.offsets if each == 1 else np.repeat(part.offsets, each), owners

    def _report(
        self, kind: str, access: Access, argument: Argument | None, offsets: np.ndarray, programs: np.ndarray,
        bad: np.ndarray | None = None, others: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Reports a mistake of the lanes `bad` (None: all). `offsets`, `programs` and `others` are by lane.

        `others`: the other program of each; for a load ahead of a store, the store's line.
        """
        buffer = argument.buffer if argument is not None else None
        first = 0 if bad is None else int(np.argmax(bad))
        program, line = int(programs[first]), access.place.line
        turn = self._turn(int(np.argmax(self.programs == program)), access)
        if self.reports.needs(kind, buffer, line, turn):
            other = NOBODY if others is None else int(others[first])
            sharing = [a for a in self.arguments if a is not None and a.buffer is buffer and a is not argument]
            own = programs == program
            lanes, astray = (int(np.count_nonzero(one)) for one in (own, own if bad is None else own & bad))
            named = [other] if kind == "load-ahead-of-store" else self._name_other(other)
            seen = Seen(
                argument, int(offsets[first]), self.name(program), named, lanes, astray, access.operation,
                *_begin_of_row(access, offsets, first), sharing,
            )  # fmt: skip
            self.reports.show(kind, buffer, line, turn, seen)
        own = programs if bad is None else programs[bad]
        self.reports.count(kind, buffer, line, own.size, np.unique(own).tolist())

    def _turn(self, number: int, access: Access) -> Turn:
        return self.launches, self.batches, number, access.turn

    def name(self, program: int) -> list[int]:
        x, y, _ = self.grid
        return [program % x, program // x % y, program // (x * y)][: self.dimensions]

    def _name_other(self, other: int) -> list[int] | None:
        other = ATOMIC - other if other <= ATOMIC else other
        return None if other in (NOBODY, SEVERAL) else self.name(other)

    # ---- the end of the call -----------------------------------------------------------------------------------

    def name_result(self, buffer: Buffer, name: str, view: BufferView) -> None:
        """Gives memory that the entry allocated and returns the name and the view of the first result in it."""
        if not buffer.name:
            buffer.name, buffer.view = name, view
        elif not buffer.results:
            return  # an argument's
        buffer.results.append((name, view))

    def findings(self) -> list[tuple[Finding, Operation]]:
        return self.reports.findings(self.buffers)

    def traffic(self) -> list[Traffic]:
        totals: dict[str, Traffic] = {}
        for buffer in self.buffers:
            counts = buffer.counts
            if buffer.parameter or counts.read or counts.written:
                total = totals.setdefault(buffer.label, Traffic(buffer.label))
                total.read += counts.read
                total.written += counts.written
                views = [view for _, view in buffer.results] or [buffer.view]
                total.size = max(total.size, sum(view.distinct * view.item for view in views))
                total.used += counts.used
                total.moved += counts.moved
                total.asked += counts.asked
                total.by_one = max(total.by_one, counts.by_one)
                total.item = views[0].item
        return list(totals.values())[:MOST_REPORTS]

    def loops(self) -> list[LoopCount]:
        """Returns the counts of the loops that load or store, where traffic is counted."""
        return [] if self.idle_iterations is None else list(self.idle_iterations.by_loop.values())[:MOST_REPORTS]

    def logged_accesses(self) -> list[LoggedAccess]:
        return self.access_log.accesses() if self.access_log is not None else []

    def told_meetings(self) -> list[Meeting]:
        return self.meetings.told() if self.meetings is not None else []

    def writers_of(self, buffer: Buffer, view: BufferView) -> np.ndarray:
        """Returns int32 in the view's shape: the last program that wrote an element; -1 none, -2 none but initialised.

        A number counts the last axis of `buffer.last_grid` fastest.
        """
        return buffer.writers(view)


def _begin_of_row(access: Access, offsets: np.ndarray, lane: int) -> tuple[int, int]:
    """Returns how many lanes come before a lane in its row of the tile, and the offset of the first of these.

    (0, its own offset) where the access goes through several parameters, and its lanes are not all here.
    """
    mask, shape = access.lanes or (None, ())
    active = np.arange(math.prod(shape)) if mask is None else np.flatnonzero(np.broadcast_to(mask, shape))
    if len(shape) < 2 or active.size != offsets.size:
        return 0, int(offsets[lane])
    row, columns = active // shape[-1], active % shape[-1]
    first = int(np.argmax(row == row[lane]))
    return int(columns[lane] - columns[first]), int(offsets[first])
