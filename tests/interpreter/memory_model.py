"""What the memory checker means, written down without care for speed: one program after another, unit by unit."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from grader.interpreter.buffers import Argument, Buffer, BufferView, base_of
from grader.interpreter.memory import CheckedMemory
from grader.ttir.module import Operation, SourcePlace

SEVERAL = -2


@dataclass
class Step:
    """One instruction of a batch. lanes: (program, byte offset) in the order of lanes; values: of stores, by lane."""

    kind: str
    argument: int
    item: int
    line: int
    lanes: list[tuple[int, int]]
    values: list[int] = field(default_factory=list)


@dataclass
class Told:
    count: int = 0
    programs: set[int] = field(default_factory=set)
    first: tuple | None = None  # (turn, program, offset, other)


class Model:
    """`buffers`: (bytes, initialised, read only, offsets of the elements that are the view's own) of each argument."""

    def __init__(self, unit: int, buffers: list[tuple[bytearray, bool, bool, set[int]]]):
        self.unit, self.buffers = unit, buffers
        self.memory = [bytearray(data) for data, _, _, _ in buffers]
        self.known = [
            dict.fromkeys(range(0, len(data), unit), True) if initialised else {} for data, initialised, _, _ in buffers
        ]
        self.writer = [{} for _ in buffers]  # unit -> (program, whether by an atomic)
        self.readers = [defaultdict(set) for _ in buffers]
        self.told: dict[tuple[str, int, int], Told] = defaultdict(Told)
        self.loaded: list[list[int]] = []

    def tell(self, kind: str, step: Step, turn: tuple, program: int, offset: int, other: int | None = None) -> None:
        told = self.told[kind, step.argument, step.line]
        told.count += 1
        told.programs.add(program)
        if told.first is None or turn < told.first[0]:
            told.first = turn, program, offset, other

    def run(self, batch: int, number: int, order: list[int], step: Step) -> None:
        loaded = {}
        for place, program in enumerate(order):
            turn = batch, place, number
            mine = [(lane, offset) for lane, (owner, offset) in enumerate(step.lanes) if owner == program]
            good = [(lane, offset) for lane, offset in mine if self.allowed(step, turn, program, offset)]
            self.check(step, turn, program, [offset for _, offset in good])
            loaded |= self.carry_out(step, turn, program, good)
        if step.kind != "store":
            self.loaded.append([loaded.get(lane, (1 << 8 * step.item) - 1) for lane in range(len(step.lanes))])

    def allowed(self, step: Step, turn: tuple, program: int, offset: int) -> bool:
        own = self.buffers[step.argument][3]
        first, last = min(own, default=0), max(own, default=-step.item)
        element = first + (offset - first) // self.unit * self.unit
        if not first <= offset <= last + self.unit - step.item or element not in own:
            self.tell(f"out-of-bounds-{step.kind}", step, turn, program, offset)
            return False
        if offset % step.item:
            self.tell("misaligned", step, turn, program, offset)
            return False
        return True

    def check(self, step: Step, turn: tuple, program: int, offsets: list[int]) -> None:
        at, read_only = step.argument, self.buffers[step.argument][2]
        units = [(offset, unit) for offset in offsets for unit in range(offset, offset + step.item, self.unit)]
        for offset, unit in units:
            writer, atomic = self.writer[at].get(unit, (program, True))
            foreign = writer != program and not atomic
            readers = self.readers[at][unit] - {program}
            if step.kind == "load" and unit not in self.known[at]:
                self.tell("uninitialised-read", step, turn, program, offset)
            if foreign:
                kind = {"load": "race-read-after-write", "store": "race-write-write"}.get(step.kind)
                self.tell(kind or "race-atomic-after-write", step, turn, program, offset, writer)
            if step.kind == "store" and readers and not read_only:
                several = len(self.readers[at][unit]) > 1
                self.tell("race-write-after-read", step, turn, program, offset, SEVERAL if several else min(readers))
        for _, unit in units:
            if step.kind == "load":
                self.readers[at][unit].add(program)
                continue
            self.known[at][unit] = True
            if step.kind == "store" or self.writer[at].get(unit, (0, True))[1]:
                self.writer[at][unit] = program, step.kind == "atomic"
        if step.kind != "load" and read_only:
            for offset in offsets:
                self.tell("input-written", step, turn, program, offset)

    def carry_out(self, step: Step, turn: tuple, program: int, lanes: list[tuple[int, int]]) -> dict[int, int]:
        """Values of the lanes before an atomic (which adds) or of a load."""
        memory, found = self.memory[step.argument], {}
        for lane, offset in lanes:
            place = slice(offset, offset + step.item)
            found[lane] = int.from_bytes(memory[place], "little")
            if step.kind != "load":
                new = step.values[lane] if step.kind == "store" else found[lane] + step.values[lane]
                memory[place] = (new % (1 << 8 * step.item)).to_bytes(step.item, "little")
        if step.kind == "store":
            for lane, offset in lanes:
                stays = int.from_bytes(memory[offset : offset + step.item], "little")
                if stays != step.values[lane]:
                    self.tell("lane-conflict", step, turn, program, offset)
        return found


class Bench:
    """A CheckedMemory with some arguments, driven by steps as the model is."""

    def __init__(self, *arguments: Argument, grid=(64, 1, 1), dimensions=1, ordered=False, **options):
        self.memory = CheckedMemory(**options)
        self.arguments = arguments
        self.memory.begin_launch(grid, dimensions, list(arguments), ordered)

    def batch(self, *programs: int) -> None:
        self.memory.begin_batch(np.array(programs, np.int32))

    def access(self, step: Step, lanes=None, semantics: int = 4) -> list[int]:
        pointers = np.array([base_of(step.argument) + offset for _, offset in step.lanes], np.int64)
        programs = np.array([program for program, _ in step.lanes], np.int32)
        values = np.array(step.values, f"u{step.item}")
        operation = access_at(step.line)
        if step.kind == "load":
            return self.memory.load(pointers, step.item, operation, programs, lanes).tolist()
        if step.kind == "store":
            self.memory.store(pointers, values, step.item, operation, programs, lanes)
            return []

        def add(old, which):
            return old + values[which]

        return self.memory.atomic(pointers, step.item, operation, programs, add, semantics, lanes).tolist()

    def end(self) -> list:
        self.memory.end_launch()
        return [finding for finding, _ in self.memory.findings()]


def access_at(line: int) -> Operation:
    """An access of a kernel, as far as memory looks at it: its place."""
    return Operation("tt.load", place=SourcePlace(line))


def vector(name: str, count: int, item: int = 4, parameter: str = "", **options) -> Argument:
    """A parameter that is all of a one-dimensional tensor of ones."""
    view = BufferView(0, (count,), (1,), item)
    data = np.ones(count, f"u{item}").view(np.uint8) if options.get("initialised", True) else None
    return Argument(parameter or f"{name}_ptr", Buffer(name, count * item, data=data, view=view, **options), 0, view)
