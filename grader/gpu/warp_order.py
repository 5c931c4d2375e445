"""Kernels that depend on the order of their warps: a warp stores to an address that another has yet to load from.

It also happens the other way: a warp loads before another has stored. Warps of a program wait for each other at
barriers alone. The compiler puts some around shared memory, and none around global memory. A warp that may load too
early or too late has an unsafe value. It matters if the value reaches a store of this warp, or other warps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from grader.gpu.compiled_facts import ACCESS, ptx_rows
from grader.gpu.laid_out import LaidOut, LaidOutBlock, LaidOutOperation
from grader.gpu.tile_layouts import WARP_THREADS, Holders, holders_of, shape_of
from grader.wire.messages import Meeting, Met

BARRIER = re.compile(r"\b(?:bar|barrier)(?:\.cta)?\.(?:sync|red)\b|\bbarrier\.cluster\.arrive\b")
STORES = ("tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_store")
BETWEEN_WARPS = (
    "tt.dot", "tt.dot_scaled", "tt.histogram", "ttg.local_alloc", "ttg.local_store", "ttng.warp_group_dot",
    "ttng.tc_gen5_mma", "ttng.tmem_alloc", "ttng.tmem_store",
)  # fmt: skip
COMBINES = ("tt.reduce", "tt.scan", "tt.map_elementwise")  # their regions are about single numbers
ALONG_AN_AXIS = ("tt.reduce", "tt.scan", "tt.gather")
AXIS = re.compile(r"\baxis = (\d+)")
OF_ADDRESSES = (
    "tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.bitcast", "tt.reshape", "ttg.convert_layout",
)  # fmt: skip
MOST_STEPS = 64  # loads, or stores, of one line
LABEL = re.compile(r"\s*(\$\w+):")
BRANCH = re.compile(r"^\s*@.*\bbra(?:\.uni)?\s+(\$\w+);")


def may_matter(meeting: Meeting, warps: int) -> bool:
    """Returns whether different warps may load and store these lanes. If not, the compiler need not be asked.

    A tile with at least as many elements as there are threads has no copies: each element is one thread's. The compiler
    lays out the tile of the load and the tile of the store alike.
    """
    few = min(math.prod(met.shape) for met in (meeting.load, meeting.store)) < WARP_THREADS * warps
    return warps > 1 and (few or meeting.load.lanes != meeting.store.lanes)


@dataclass(frozen=True)
class Conflict:
    """A dependence on the order of warps: a loaded tile's elements, and how many warps hold copies of an element.

    `copies`: the most warps that hold the same element. `threads`: of a program.
    """

    elements: int
    copies: int
    threads: int


@dataclass
class WarpOrderReader:
    """Reads a kernel's text, in which tiles have layouts. `filename`: of the submission that places refer to."""

    laid_out: LaidOut
    filename: str
    _all: int = field(init=False)  # a set of warps is a number: its bits
    _made_by: dict[int, LaidOutOperation] = field(init=False, repr=False)  # values, by number

    def __post_init__(self) -> None:
        self._all = (1 << self.laid_out.warps) - 1
        self._made_by = {result: step for step in _walk(self.laid_out.blocks) for result in step.results}

    def conflict(self, meeting: Meeting) -> Conflict | None:
        """Returns the conflict of a load that a warp other than the storing one makes, if its value has an effect.

        Returns None if there is none. Barriers are not considered. An unrolled loop has made many loads, or stores, of
        one line: only the first MOST_STEPS are examined.
        """
        stores = self._steps("tt.store", meeting.store)[:MOST_STEPS]
        for load in self._of_the_same(self._steps("tt.load", meeting.load)[:MOST_STEPS], stores):
            unsafe = 0
            for store in stores:
                unsafe |= self._unsafe(load, store, meeting)
            held = self._held(load.operand_types[0])
            if held is not None and self._matters(load, unsafe):
                copies = int(held.holds.sum(1).max())
                return Conflict(held.holds.shape[0], copies, WARP_THREADS * self.laid_out.warps)
        return None

    def _of_the_same(self, loads: list[LaidOutOperation], stores: list[LaidOutOperation]) -> list[LaidOutOperation]:
        """Returns the loads through a pointer that the stores use; all loads if there are none.

        Other loads may only share their line.
        """
        pointers = {self._pointer(store) for store in stores}
        return [load for load in loads if self._pointer(load) in pointers] or loads

    def _pointer(self, step: LaidOutOperation) -> int:
        """Returns the value at the start of an access's address computation, such as a kernel's argument.

        Follows the operations OF_ADDRESSES back, each to its first operand.
        """
        value = step.operands[0]
        while (made := self._made_by.get(value)) is not None and made.name in OF_ADDRESSES:
            value = made.operands[0]
        return value

    def lacks_barrier(self, meeting: Meeting, ptx: str) -> bool:
        """Returns whether the PTX has no barrier between the load and the store; False where it does not show them."""
        rows = list(ptx_rows(ptx, self.filename))
        loads = _rows(rows, "ld", self._steps("tt.load", meeting.load))
        stores = _rows(rows, "st", self._steps("tt.store", meeting.store))
        first, second = (loads, stores) if meeting.loads_first else (stores, loads)
        barriers = [number for number, (_, _, text) in enumerate(rows) if BARRIER.search(text)]
        if not first or not second:
            return False
        barriers = [number for number in barriers if not _may_be_skipped(rows, first[0], number)]
        later = [number for number in second if number > first[0]]
        if not meeting.in_one_turn or not later:  # a loop leads back
            return not barriers
        start = max(number for number in first if number < later[0])
        return not any(start < number < later[0] for number in barriers)

    def _steps(self, name: str, met: Met) -> list[LaidOutOperation]:
        return [
            step
            for step in _walk(self.laid_out.blocks)
            if step.name == name
            and (step.place.line, list(step.place.via)) == (met.line, met.via)
            and list(shape_of(step.operand_types[0])) == met.shape
        ]

    def _held(self, type: str) -> Holders | None:
        return holders_of(type, self.laid_out.layouts, self.laid_out.warps)

    def _unsafe(self, load: LaidOutOperation, store: LaidOutOperation, meeting: Meeting) -> int:
        """Returns the set of warps that load an element which another warp stores; 0 where a layout is not known."""
        loaded, stored = self._held(load.operand_types[0]), self._held(store.operand_types[0])
        if loaded is None or stored is None:
            return 0
        others = np.arange(self.laid_out.warps) != stored.storing[meeting.store.lanes][:, None]
        return _as_set(np.flatnonzero((loaded.holds[meeting.load.lanes] & others).any(0)))

    # ---- the way of a value --------------------------------------------------------------------------------------

    def _matters(self, load: LaidOutOperation, unsafe: int) -> bool:
        """Returns whether a value that the warps in the set `unsafe` have loaded reaches a store of a warp with it."""
        if not unsafe:
            return False
        values = dict.fromkeys(load.results, unsafe)
        before = None
        while before != values:  # loops lead values back
            before = dict(values)
            if self._in_blocks(self.laid_out.blocks, values, 0):
                return True
        return False

    def _in_blocks(self, blocks: Iterable[LaidOutBlock], values: dict[int, int], around: int) -> bool:
        """Adds to `values` the set of warps that have an unsafe value, by value; returns True once one of them stores.

        `around`: the set of warps for which it is unsafe whether these blocks run.
        """
        return any(self._in_step(step, values, around) for block in blocks for step in block.steps)

    def _in_step(self, step: LaidOutOperation, values: dict[int, int], around: int) -> bool:
        unsafe = around
        for operand in step.operands:
            unsafe |= values.get(operand, 0)
        if step.regions and step.name not in COMBINES:
            return self._in_regions(step, values, around)
        if unsafe and self._stores(step) & unsafe:
            return True
        if unsafe and self._goes_between_warps(step):
            unsafe = self._all
            for operand in step.operands[1:] if step.name == "ttg.local_store" else ():
                values[operand] = unsafe
        for result in step.results:
            values[result] = values.get(result, 0) | unsafe
        return False

    def _in_regions(self, step: LaidOutOperation, values: dict[int, int], around: int) -> bool:
        """Goes through a loop or a branch: its operands and yielded values reach block arguments and results in order.

        Returns True once an unsafe warp stores.
        """
        operands = step.operands[{"scf.for": 3, "scf.while": 0}.get(step.name, len(step.operands)) :]
        decide = step.operands[: len(step.operands) - len(operands)]
        around = self._unsafe_together(decide, values, around)
        blocks = [block for region in step.regions for block in region]
        ends = [block.steps[-1] for block in blocks if block.steps]
        for end in ends:
            if end.name == "scf.condition":
                around = self._unsafe_together(end.operands[:1], values, around)
        yielded = [end.operands[end.name == "scf.condition" :] for end in ends]
        for block in blocks:
            skipped = 1 if step.name == "scf.for" else 0
            for sources in (operands, *yielded):
                self._join(block.arguments[skipped:], sources, values, around)
        conflict = self._in_blocks(blocks, values, around)
        for sources in (operands, *yielded):
            self._join(step.results, sources, values, around)
        return conflict

    def _join(self, targets: list[int], sources: list[int], values: dict[int, int], around: int) -> None:
        for target, source in zip(targets, sources):
            values[target] = self._unsafe_together([source, target], values, around)

    def _unsafe_together(self, ones: Iterable[int], values: dict[int, int], unsafe: int) -> int:
        for one in ones:
            unsafe |= values.get(one, 0)
        return unsafe

    def _stores(self, step: LaidOutOperation) -> int:
        """Returns the set of warps that store to memory in this step; 0 if it is no store."""
        if step.name in STORES:
            held = self._held(step.operand_types[0])
            return self._all if held is None else _as_set(np.unique(held.storing))
        writes = step.name.startswith("ttng.async_tma") and "global_to_local" not in step.name
        return self._all if writes else 0

    def _goes_between_warps(self, step: LaidOutOperation) -> bool:
        """Returns whether a warp may get elements in this step that it did not hold."""
        if step.name == "ttg.convert_layout":
            source, target = self._held(step.operand_types[0]), self._held(step.result_types[0])
            return source is None or target is None or bool((target.holds & ~source.holds).any())
        if step.name in ALONG_AN_AXIS:
            return not all(self._is_within_warps(type, step) for type in step.operand_types[: len(step.results)])
        return step.name in BETWEEN_WARPS

    def _is_within_warps(self, type: str, step: LaidOutOperation) -> bool:
        """Returns whether each warp that holds an element holds all others along the step's axis.

        False where the layout or the axis is not known.
        """
        held, axis = self._held(type), AXIS.search(step.attributes)
        if held is None or axis is None:
            return False
        by_axes = held.holds.reshape(*shape_of(type), -1)
        return bool((by_axes.any(int(axis[1])) == by_axes.all(int(axis[1]))).all())


def _may_be_skipped(rows: list[tuple], first: int, barrier: int) -> bool:
    """Returns whether a branch between an access and a barrier leads past the barrier: a loop without iterations."""
    labels = {match[1]: number for number, (_, _, text) in enumerate(rows) if (match := LABEL.match(text))}
    branches = (BRANCH.match(text) for _, _, text in rows[first:barrier])
    return any(branch is not None and labels.get(branch[1], 0) > barrier for branch in branches)


def _as_set(warps: Iterable[int]) -> int:
    return sum(1 << int(warp) for warp in warps)


def _walk(blocks: Iterable[LaidOutBlock]) -> Iterable[LaidOutOperation]:
    for block in blocks:
        for step in block.steps:
            yield step
            for region in step.regions:
                yield from _walk(region)


def _rows(rows: list[tuple], opcode: str, steps: list[LaidOutOperation]) -> list[int]:
    """Returns the numbers of the rows that carry out these steps, as far as their places show it."""
    at = {step.at for step in steps}
    numbers = [number for number, (place, _, text) in enumerate(rows) if place in at and _is(text, opcode)]
    callers = {step.place.via[0] for step in steps if step.place.via}
    exact = [number for number in numbers if rows[number][1] in callers]
    return exact if callers and exact else numbers


def _is(text: str, opcode: str) -> bool:
    match = ACCESS.search(text)
    return match is not None and match[1] == opcode
