"""Keeps what one program computes, operation by operation, while it runs alone in its batch.

Nothing is worked out here: arrays are kept as they are, and only the first and the last iterations of a loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grader.interpreter.buffers import Argument, Buffer
from grader.interpreter.findings import Turn as Moment
from grader.interpreter.frame import Frame, ReadyBlock, ReadyOperation
from grader.interpreter.known_operations import entry_of
from grader.ttir.module import Operation, SourcePlace, Type
from grader.wire.messages import LoggedAccess

MOST_ITERATIONS = 3  # iterations of a loop: that many of the first, and of the last
MOST_HELD = 256 << 20  # bytes of arrays; what comes later is not kept
LOOPS = ("scf.for", "scf.while")


@dataclass(slots=True)
class TouchedLanes:
    """The lanes of an access that touch one buffer: byte offsets, NO_OFFSET for a lane that touches nothing of it."""

    kind: str
    buffer: Buffer
    offsets: np.ndarray


@dataclass(slots=True)
class TracedValue:
    """A value of the program. `kind`: "parameter", "carried", "value", "printed"."""

    kind: str
    operation: Operation | None
    place: SourcePlace
    type: Type
    value: Any = None
    touched: list[TouchedLanes] = field(default_factory=list)
    mask: np.ndarray | None = None
    callers: tuple[SourcePlace, ...] = ()  # calls, outermost first, of functions that were not inlined


@dataclass(slots=True)
class TracedPassage:
    """An iteration of a loop, or all of the program."""

    items: list[TracedValue | TracedLoop] = field(default_factory=list)
    held: int = 0  # bytes


@dataclass(slots=True)
class TracedLoop:
    operation: Operation
    callers: tuple[SourcePlace, ...]
    first: list[TracedPassage] = field(default_factory=list)
    last: deque[TracedPassage] = field(default_factory=deque)
    iterations: int = 0

    def add(self, passage: TracedPassage) -> TracedPassage | None:
        """Adds an iteration. Returns the iteration that is not kept any more, or None."""
        self.iterations += 1
        if len(self.first) < MOST_ITERATIONS:
            self.first.append(passage)
            return None
        self.last.append(passage)
        return self.last.popleft() if len(self.last) > MOST_ITERATIONS else None

    def kept(self) -> Iterator[tuple[int, TracedPassage]]:
        """Yields the number, from 1, and the passage of each iteration that is kept, in order."""
        yield from enumerate(self.first, 1)
        yield from enumerate(self.last, self.iterations - len(self.last) + 1)


class Tracer:
    def __init__(self) -> None:
        self.all = TracedPassage()
        self.arguments: list[Argument | None] = []  # of the launch: what pointers lead to
        self._held = 0  # bytes of all that is kept
        self._open: list[TracedPassage] = [self.all]
        self._loops: list[TracedLoop | None] = []  # around the running operation; None: a branch, or a function
        self._callers: tuple[SourcePlace, ...] = ()
        self._touched: list[TouchedLanes] = []
        self._arguments_follow = True

    # ---- what runs ---------------------------------------------------------------------------------------------------

    def carry_out(self, block: ReadyBlock, frame: Frame) -> None:
        """Carries out all but the terminator of a block, instead of the block's own `run`, and notes the values."""
        self._begin(block, frame)
        values = frame.values
        for step in block.steps:
            operands = [values[number] for number in step.operands]
            out = self._run(step, frame, operands)
            results = step.results
            if len(results) == 1:
                values[results[0]] = out
            elif results:
                for number, value in zip(results, out):
                    values[number] = value
            self._note(step.operation, operands, out)

    def note(self, moment: Moment, access: LoggedAccess, buffer: Buffer, offsets: np.ndarray) -> None:
        """Notes what the operation under way touches. Memory calls this as it calls an AccessLog."""
        self._touched.append(TouchedLanes(access.kind, buffer, offsets))

    def _run(self, step: ReadyOperation, frame: Frame, operands: list[Any]) -> Any:
        operation = step.operation
        opens = entry_of(operation.name).control
        if opens:
            self._enter(operation)
        try:
            return step.run(frame, *operands) if step.stateful else step.run(*operands)
        finally:
            if opens:
                self._leave(operation)

    def _enter(self, operation: Operation) -> None:
        loop = TracedLoop(operation, self._callers) if operation.name in LOOPS else None
        if loop is not None:
            self._open[-1].items.append(loop)
        self._loops.append(loop)
        if operation.name == "tt.call":
            self._callers = (*self._callers, operation.place)

    def _leave(self, operation: Operation) -> None:
        loop = self._loops.pop()
        if loop is not None and loop.iterations:
            self._open.pop()
        if operation.name == "tt.call":
            self._callers = self._callers[:-1]

    # ---- what is kept ------------------------------------------------------------------------------------------------

    def _begin(self, block: ReadyBlock, frame: Frame) -> None:
        """Notes the arguments of a block that begins an iteration of a loop, or the kernel."""
        loop = self._loops[-1] if self._loops else None
        if self._arguments_follow:
            kind, self._arguments_follow = "parameter", False
        elif loop is not None and block.block is loop.operation.regions[0][0]:
            if loop.iterations:
                self._open.pop()
            passage, kind = TracedPassage(), "carried"
            forgotten = loop.add(passage)
            self._held -= _held(forgotten) if forgotten is not None else 0
            self._open.append(passage)
        else:
            return
        for number, type, place in zip(block.arguments, block.block.types, block.block.places):
            self._keep(TracedValue(kind, None, place, type, frame.values[number], callers=self._callers))

    def _note(self, operation: Operation, operands: list[Any], out: Any) -> None:
        touched, self._touched = self._touched, []
        entry = entry_of(operation.name)
        if entry.control:
            return
        if operation.name == "tt.print":
            for type, value in zip(operation.operand_types, operands):
                self._keep(TracedValue("printed", operation, operation.place, type, value, callers=self._callers))
            return
        at = entry.mask_of(operation)
        mask = None if at is None else operands[at]
        for type, value in _values_of(operation, operands, out):
            self._keep(TracedValue("value", operation, operation.place, type, value, touched, mask, self._callers))

    def _keep(self, noted: TracedValue) -> None:
        if self._held < MOST_HELD:
            size = getattr(noted.value, "nbytes", 0) + sum(touched.offsets.nbytes for touched in noted.touched)
            self._open[-1].held += size
            self._held += size
            self._open[-1].items.append(noted)


def _values_of(operation: Operation, operands: list[Any], out: Any) -> list[tuple[Type, Any]]:
    """Returns the values of an operation to report, with their types: the value that it stores, or else its results."""
    stored = entry_of(operation.name).stored
    if stored is not None:
        return [(operation.operand_types[stored], operands[stored])]
    outs = out if len(operation.results) > 1 else [out]
    return list(zip(operation.result_types, outs))


def _held(passage: TracedPassage) -> int:
    loops = (item for item in passage.items if isinstance(item, TracedLoop))
    return passage.held + sum(_held(iteration) for loop in loops for _, iteration in loop.kept())
