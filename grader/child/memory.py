"""The memory checker: every load, store and atomic of a kernel, checked exactly.

Nothing is raised: lanes that must not touch memory are masked off and the kernel runs on, so one run finds all.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

from grader.child.geometry import Geometry
from grader.child.pointers import ADDRESS_MASK, TAG_SHIFT, Access, View, distinct, is_increasing, item_size, make_handle
from grader.child.reports import MOST_REPORTS, Report, Reports
from grader.child.shadow import ATOMIC, NOBODY, Order, Shadow
from grader.child.trace import Trace
from grader.protocol import Finding, Launch, TracedAccess, Traffic

SECTOR = 32  # bytes; the least that a GPU moves between memory and a multiprocessor

MOST_DESCRIPTION = 100  # characters


class MemoryChecker:
    def __init__(self, learner_file: str, *, order: str | int = "forward", fill: str = "poison", count_traffic=False,
                 at_once: int = 1, trace: Trace | None = None):  # fmt: skip
        self.learner_file = learner_file
        self.order, self.fill = order, fill
        self.count_traffic, self.at_once = count_traffic, at_once
        self.trace = trace
        self.shadows: dict[int, Shadow] = {}  # by the address of the storage, over the whole call
        self.reports = Reports()
        self.launches: list[Launch] = []
        self.kernel, self.launch = "", Launch("", [])
        self.foreign: tuple[str, int] | None = None  # a kernel's parameter and its launch's line: memory of elsewhere
        self._forget_launch()

    # ---- storages and launches ----------------------------------------------------------------------------

    def shadow_of(self, tensor: torch.Tensor, **new) -> Shadow:
        """The shadow of a tensor's storage; `new` describes the storage if it is not known yet."""
        key = tensor.untyped_storage().data_ptr()
        if key not in self.shadows:
            self.shadows[key] = Shadow(tensor, **new)
        return self.shadows[key]

    def _forget_launch(self) -> None:
        self.views: list[View | None] = [None]  # number 0: not a pointer to an argument
        self.tags: dict[int, int] = {}  # id of a tensor -> its number
        self.grid, self.dimensions = (1, 1, 1), 3
        self.program, self.permutation = 0, None
        self.idle = False  # the running program has not touched memory yet
        self.after = Order()  # what atomics have ordered before this program

    def begin_launch(self, kernel: str, arguments: list[tuple[str, object]]) -> None:
        self._forget_launch()
        self.kernel = kernel
        self.launch = Launch(kernel, [], self.learner_line())
        for name, value in arguments:
            self._register(name, value)
            self._describe(name, value)

    def _describe(self, name: str, value: object) -> None:
        """What the launch passes, to be compared with what it passes where it is compiled."""
        if isinstance(value, (bool, int, float, str)) or value is None:
            text = f"{name} = {value!r}"[:MOST_DESCRIPTION]
        elif isinstance(value, torch.Tensor) and value.numel():
            place = value.storage_offset() * value.element_size()
            text = f"{name} = {self.shadow_of(value).name or 'allocated'} + {place}"
        else:
            return
        if len(self.launch.arguments) < MOST_REPORTS:
            self.launch.arguments.append(text)

    def _register(self, name: str, value: object) -> None:
        if isinstance(value, tuple):
            for number, item in enumerate(value):
                self._register(f"{name}[{number}]", item)
        elif isinstance(value, interpreter.TensorDescriptor):
            self._register(name, value.base)
        elif hasattr(value, "data_ptr"):
            tensor = interpreter._unwrap_tensor(value)
            if not self.foreign and self._is_foreign(tensor):
                self.foreign = name, self.launch.line
            shadow = self.shadow_of(tensor)
            shadow.parameter = shadow.parameter or name.removesuffix("_ptr")
            self.tags[id(value)] = tag = len(self.views)
            self.views.append(View(tensor, shadow, tag))

    def _is_foreign(self, tensor: torch.Tensor) -> bool:
        """Memory that the call neither got nor allocated: a result kept from before, or numbers of Python's."""
        storage = tensor.untyped_storage()
        return storage.nbytes() > 0 and storage.data_ptr() not in self.shadows

    def grid_given(self, grid: tuple[int, ...]) -> None:
        """The grid as the learner wrote it: programs are named with as many numbers as it has."""
        self.dimensions = len(grid)

    def begin_grid(self, grid: tuple[int, int, int]) -> None:
        self.grid = grid
        self.launch.grid = list(grid[: self.dimensions])
        if len(self.launches) < MOST_REPORTS:
            self.launches.append(self.launch)
        programs = grid[0] * grid[1] * grid[2]
        if self.count_traffic:  # in the order of a GPU
            self.permutation = np.arange(programs).reshape(grid).transpose(2, 1, 0).ravel()
        elif self.order == "reverse":
            self.permutation = np.arange(programs)[::-1]
        elif self.order != "forward":
            self.permutation = np.random.default_rng(self.order).permutation(programs)

    def begin_program(self, x: int, y: int, z: int) -> tuple[int, int, int]:
        """The program that runs at this turn."""
        self._end_program()
        self.idle = True
        _, size_y, size_z = self.grid
        self.program = (x * size_y + y) * size_z + z
        if self.permutation is not None:
            self.program = int(self.permutation[self.program])
        self.after.begin_program()
        return self.index_of(self.program)

    def _end_program(self) -> None:
        self.launch.idle += self.idle
        self.idle = False

    def index_of(self, program: int) -> tuple[int, int, int]:
        _, size_y, size_z = self.grid
        return program // (size_y * size_z), program // size_z % size_y, program % size_z

    def end_launch(self) -> None:
        self._end_program()
        for view in self.views[1:]:
            view.shadow.end_launch(self.grid)
        self._forget_launch()

    # ---- one access -----------------------------------------------------------------------------------------

    def access(self, pointers, mask, kind: str) -> Access:
        tagged = pointers.data
        lanes = None if mask is None else np.broadcast_to(mask.data, tagged.shape)
        active = tagged.ravel() if lanes is None or lanes.all() else tagged[lanes]
        access = Access(make_handle(tagged & ADDRESS_MASK, pointers.dtype), mask)
        if active.size == 0:
            return access
        self.idle = False
        lowest, highest = int(active.min()), int(active.max())
        tag = lowest >> TAG_SHIFT
        if tag != highest >> TAG_SHIFT or not 0 < tag < len(self.views):
            return self._access_to_several(pointers, access, lanes, kind)
        view = self.views[tag]
        item = item_size(pointers)
        bad = view.outside(active, lowest, highest, item)
        if bad is not None:
            self.report(f"out-of-bounds-{kind}", view, int(active[bad][0]), int(bad.sum()))
            kept = np.ones(tagged.shape, bool) if lanes is None else np.array(lanes)
            kept[kept] = ~bad
            access.mask, active = make_handle(kept, tl.int1), active[~bad]
            if active.size == 0:
                return access
        access.view, access.active = view, active
        self._note(view, active, item, kind)
        if self.trace is not None:
            self._trace(access, tagged.shape, kind)
        return access

    def _trace(self, access: Access, shape: tuple[int, ...], kind: str) -> None:
        lanes = True if access.mask is None else access.mask.data
        addresses = np.where(lanes, access.pointers.data, np.uint64(0)) * np.ones(shape, np.uint64)
        traced = TracedAccess(
            kind, "", self.learner_line(), self._name_program(self.program), len(self.launches) - 1
        )  # fmt: skip
        self.trace.note(traced, access.view.shadow, addresses)

    def _access_to_several(self, pointers, access: Access, lanes, kind: str) -> Access:
        """One access through pointers of several arguments: each argument's lanes by themselves."""
        tags = pointers.data >> np.uint64(TAG_SHIFT)
        good = np.ones(tags.shape, bool) if lanes is None else np.array(lanes)
        for tag in np.unique(tags[good]):
            chosen = good & (tags == tag)
            if 0 < tag < len(self.views):
                kept = self.access(pointers, make_handle(chosen, tl.int1), kind).mask.data
            else:  # an address that the kernel made of a number, wherever it may lead
                kept = np.zeros_like(chosen)
                self.report("wild-pointer", count=int(chosen.sum()))
            good &= ~chosen | kept
        access.mask = make_handle(good, tl.int1)
        return access

    def _note(self, view: View, active: np.ndarray, item: int, kind: str) -> None:
        shadow = view.shadow
        units = shadow.units_of(active - view.base, item)
        if kind == "load":
            sights = shadow.note_load(units, self.program, self.after)
            shadow.bytes_read += self._bytes_read(shadow, units, active, item)
        else:
            note = shadow.note_store if kind == "store" else shadow.note_atomic
            sights = note(units, self.program, self.after)
            shadow.bytes_written += item * (distinct(active) if self.count_traffic else active.size)
            if shadow.read_only:
                self.report("input-written", view, int(active[0]), active.size)
        if self.count_traffic and active.size > 1:  # a single number moves a sector however it lies
            shadow.bytes_used += item * distinct(active)
            shadow.bytes_moved += SECTOR * distinct(active // np.uint64(SECTOR))
        lanes_to_units = units.size // active.size
        for sight in sights:
            self.report(sight.kind, view, int(active[sight.position // lanes_to_units]), sight.count, sight.other)

    def _bytes_read(self, shadow: Shadow, units: np.ndarray, active: np.ndarray, item: int) -> int:
        if not self.count_traffic:
            return item * active.size
        if self.at_once > 1:
            return shadow.unit * shadow.count_fresh(units, self._launch_number() // self.at_once)
        return item * distinct(active)

    def _launch_number(self) -> int:
        """The program's place in a GPU's order, in which the first axis counts fastest."""
        x, y, z = self.index_of(self.program)
        return x + self.grid[0] * (y + self.grid[1] * z)

    def note_semantics(self, semantics: object) -> None:
        """Of the atomic under way: relaxed orders nothing, acquire and release order one side each."""
        name = getattr(semantics, "name", "ACQUIRE_RELEASE")
        self.after.joins = name in ("ACQUIRE", "ACQUIRE_RELEASE")
        self.after.publishes = name in ("RELEASE", "ACQUIRE_RELEASE")

    def note_masked_fill(self) -> None:
        """A load without `other` had lanes masked off by its own mask."""
        line = self.learner_line()
        if line not in self.launch.unmasked_fills and len(self.launch.unmasked_fills) < MOST_REPORTS:
            self.launch.unmasked_fills.append(line)

    def check_lanes(self, access: Access, values) -> None:
        """After a store: does memory hold what each lane wrote?"""
        if access.view is None or values.data.size == 1 or is_increasing(access.active):
            return
        wrote = np.ascontiguousarray(values.data)
        lanes = np.broadcast_to(True if access.mask is None else access.mask.data, wrote.shape)
        found = interpreter._interpreter.load(access.pointers.data, lanes, np.zeros_like(wrote), wrote.dtype)
        bits = f"u{wrote.dtype.itemsize}"
        lost = (found.view(bits) != wrote.view(bits)) & lanes
        if lost.any():
            self.report("lane-conflict", access.view, int(access.pointers.data[lost][0]), int(lost.sum()))

    # ---- reports ----------------------------------------------------------------------------------------------

    def report(self, kind: str, view: View | None = None, address: int = 0, count: int = 1, other: int = NOBODY):
        shadow, geometry = (view.shadow, view.geometry) if view else (None, None)
        other = ATOMIC - other if other <= ATOMIC else other
        other_program = self._name_program(other) if other >= 0 else None
        program = self._name_program(self.program)
        report = Report(
            kind, self.learner_line(), program, other_program, shadow, geometry, address & int(ADDRESS_MASK)
        )
        self.reports.add(report, count, self.program)

    def _name_program(self, program: int) -> list[int]:
        return list(self.index_of(program)[: self.dimensions])

    def learner_line(self) -> int:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.learner_file:
            frame = frame.f_back
        return frame.f_lineno if frame else 0

    # ---- the end of the call ------------------------------------------------------------------------------------

    def name_result(self, tensor: torch.Tensor, name: str) -> None:
        """Memory that the entry allocated and returns is known by the result's name and shape."""
        shadow = self.shadow_of(tensor)
        if not shadow.name:
            shadow.name, shadow.geometry = name, Geometry(tensor)

    def findings(self) -> list[Finding]:
        return self.reports.findings(self.shadows.values())

    def traffic(self) -> list[Traffic]:
        totals: dict[str, Traffic] = {}
        for shadow in self.shadows.values():
            if shadow.parameter or shadow.bytes_read or shadow.bytes_written:
                geometry = shadow.geometry
                total = totals.setdefault(shadow.label, Traffic(shadow.label))
                total.read += shadow.bytes_read
                total.written += shadow.bytes_written
                total.size = max(total.size, geometry.distinct * geometry.item)
                total.used += shadow.bytes_used
                total.moved += shadow.bytes_moved
        return list(totals.values())[:MOST_REPORTS]
