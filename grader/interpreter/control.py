"""Control flow: loops, branches and calls, where programs that run side by side may go different ways.

Programs that have left a loop, or are in the other branch, stay in the batch: their values are kept as they are, and
`active` keeps them from touching memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.interpreter.batch import Batch
from grader.interpreter.dtypes import over
from grader.interpreter.endless_loops import WHY, Endless, deciding, stays
from grader.interpreter.frame import BlockTracer, Frame, ReadyBlock
from grader.interpreter.idle_iterations import touches_memory
from grader.interpreter.promises import note
from grader.interpreter.registry import carries_out
from grader.ttir.module import Function, Operation
from grader.wire.messages import COUNTER

Region = Sequence[ReadyBlock]


def run_region(blocks: Region, frame: Frame, at: int = 0) -> list[Any]:
    """Runs from block number `at` to a terminator that leaves the region. Returns the terminator's operands."""
    while True:
        operands = blocks[at].run(frame)
        last = blocks[at].last
        if last.name == "cf.br":
            at = _enter(blocks, frame, last, 0)
        elif last.name == "cf.cond_br":
            truth = np.broadcast_to(operands[0], (frame.count,))
            sides = frame.everyone() & truth, frame.everyone() & ~truth
            taken = [bool(side.any()) for side in sides]
            if all(taken):
                return _both_ways(blocks, frame, last, sides)
            at = _enter(blocks, frame, last, 0 if taken[0] else 1)
        else:
            return operands


@dataclass
class ReadyFunction:
    function: Function
    blocks: tuple[ReadyBlock, ...]

    def call(
        self, batch: Batch, arguments: list[Any], active: np.ndarray | None, count: int,
        tracer: BlockTracer | None = None,
    ) -> list[Any]:  # fmt: skip
        values: list[Any] = [None] * self.function.values
        for number, value in zip(self.blocks[0].arguments, arguments):
            values[number] = value
        return run_region(self.blocks, Frame(batch, values, active, count, tracer))


def _enter(blocks: Region, frame: Frame, last: Operation, way: int) -> int:
    successor = last.successors[way]
    operands = [frame.values[number] for number in successor.operands]
    for number, value in zip(blocks[successor.block].arguments, operands):
        frame.values[number] = value
    return successor.block


def _both_ways(blocks: Region, frame: Frame, last: Operation, sides: tuple[np.ndarray, np.ndarray]) -> list[Any]:
    """Runs both ways to the end of the region, one after the other. Returns the region's results, merged by program."""
    ends = []
    for way, side in enumerate(sides):
        own = frame.branch(side)
        own.values = list(frame.values)
        at = _enter(blocks, own, last, way)
        ends.append(run_region(blocks, own, at))
    return [_joined(frame, sides[0], one, other) for one, other in zip(*ends)]


def merged(mask: np.ndarray, new: Any, old: Any) -> Any:
    """Returns `new` for the programs of the mask, `old` for the others.

    Values are arrays, descriptors or block pointers; the mask is a bool for each program.
    """
    if new is old:
        return new
    if not isinstance(new, np.ndarray):  # a descriptor or a block pointer
        return new.merged(mask, old)
    return np.where(over(mask, new.ndim - 1), new, old)


def _joined(frame: Frame, mask: np.ndarray, new: Any, old: Any) -> Any:
    """Returns two values of a frame merged, as `merged` does, and merges the record of their lost lanes."""
    out = merged(mask, new, old)
    if frame.batch.lost:
        frame.batch.lost.merge(out, mask, new, old)
    return out


def _results(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


@carries_out("scf.if", stateful=True, control=True)
def _if(operation: Operation, regions: list[Region], functions: dict[str, ReadyFunction]) -> Callable:
    def run(frame: Frame, condition: np.ndarray) -> Any:
        truth = np.broadcast_to(condition, (frame.count,))
        seen = truth if frame.active is None else truth[frame.active]
        if seen.all():
            return _results(run_region(regions[0], frame))
        if not seen.any():
            return _results(run_region(regions[1], frame)) if len(regions) > 1 and regions[1] else None
        then = run_region(regions[0], frame.branch(frame.everyone() & truth))
        if len(regions) < 2 or not regions[1]:
            return None
        otherwise = run_region(regions[1], frame.branch(frame.everyone() & ~truth))
        return _results([_joined(frame, truth, one, other) for one, other in zip(then, otherwise)])

    return run


def _counts(loop: Operation, frame: Frame) -> Callable[[Frame, int], None] | None:
    """Notes that the programs which run here begin this loop, where idle iterations are counted; None where not.

    Returns what notes an iteration of the programs that run in a frame, from the number of the last access before it.
    """
    memory, count = frame.batch.memory, frame.batch.memory.idle_iterations
    if count is None:
        return None
    count.note_run(loop, int(np.count_nonzero(frame.everyone())))
    return lambda inner, before: count.note(loop, memory.unused_since(before)[inner.everyone()])


@carries_out("scf.for", stateful=True, control=True)
def _for(operation: Operation, regions: list[Region], functions: dict[str, ReadyFunction]) -> Callable:
    (body,) = regions
    variable, *carried_numbers = body[0].arguments
    place, touches = operation.place, touches_memory(operation)

    def run(frame: Frame, low: np.ndarray, high: np.ndarray, step: np.ndarray, *carried: Any) -> Any:
        values, now = frame.values, list(carried)
        distance = high.astype(np.int64) - low
        trips = np.maximum(-(-distance // np.maximum(step.astype(np.int64), 1)), 0)
        if low.dtype.itemsize < 8:  # the counter that ends the loop wraps around, and the loop goes on
            after = low + trips * step
            if after.max() > np.iinfo(low.dtype).max:
                note(frame, COUNTER, operation, after > np.iinfo(low.dtype).max)
        if frame.active is not None:
            trips = np.where(frame.active, trips, 0)
            least = int(np.broadcast_to(trips, (frame.count,))[frame.active].min(initial=0))
        else:
            least = int(trips.min())
        at, pipelined = low, frame.batch.pipelined.get(operation)
        note_iteration = _counts(operation, frame) if touches else None
        if pipelined is not None:
            frame.batch.memory.pipelined.append(pipelined)
        for iteration in range(int(trips.max())):
            frame.batch.spend(1, 1, place)
            if pipelined is not None:
                pipelined.iteration = iteration
            values[variable] = at
            for number, value in zip(carried_numbers, now):
                values[number] = value
            before, inner = frame.batch.memory.accesses, frame
            if iteration < least:
                now = run_region(body, frame)
            else:
                going = np.broadcast_to(trips, (frame.count,)) > iteration
                inner = frame.branch(going)
                new = run_region(body, inner)
                now = [_joined(frame, going, one, other) for one, other in zip(new, now)]
            if note_iteration is not None:
                note_iteration(inner, before)
            at = at + step
        if pipelined is not None:
            frame.batch.memory.pipelined.remove(pipelined)
            pipelined.stored.clear()
        return _results(now)

    return run


@carries_out("scf.while", stateful=True, control=True)
def _while(operation: Operation, regions: list[Region], functions: dict[str, ReadyFunction]) -> Callable:
    before, after = regions
    place, decides, touches = operation.place, deciding(operation), touches_memory(operation)

    def run(frame: Frame, *carried: Any) -> Any:
        values, now, going, out = frame.values, list(carried), frame.active, None
        note_iteration = _counts(operation, frame) if touches else None
        while True:
            frame.batch.spend(1, 1, place)
            inner, before_it = frame.branch(going), frame.batch.memory.accesses
            for number, value in zip(before[0].arguments, now):
                values[number] = value
            condition, *operands = run_region(before, inner)
            here = inner.everyone()
            out = operands if out is None else [_joined(frame, here, new, old) for new, old in zip(operands, out)]
            goes_on = np.broadcast_to(condition, (frame.count,)) & here
            if not goes_on.any():
                return _results(out)
            for number, value in zip(after[0].arguments, operands):
                values[number] = value
            inner = frame.branch(None if goes_on.all() else goes_on)
            new = run_region(after, inner)
            if note_iteration is not None:
                note_iteration(inner, before_it)
            if decides is not None and stays(decides, now, new, goes_on):
                raise Endless(place, WHY)
            now = new if inner.active is None else [_joined(frame, goes_on, one, old) for one, old in zip(new, now)]
            going = inner.active

    return run


@carries_out("tt.call", stateful=True, control=True)
def _call(operation: Operation, regions: list[Region], functions: dict[str, ReadyFunction]) -> Callable:
    name = str(operation.attributes["callee"]).lstrip("@").strip('"')

    def run(frame: Frame, *arguments: Any) -> Any:
        with frame.batch.deeper(operation.place):
            results = functions[name].call(frame.batch, list(arguments), frame.active, frame.count, frame.tracer)
            return _results(results)

    return run
