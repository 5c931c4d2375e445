"""The values of a function under way, and the blocks of operations that are carried out on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from grader.interpreter.batch import Batch
from grader.ttir.module import Block, Operation, SourcePlace


class BlockTracer(Protocol):
    """Carries out blocks in their own way, and keeps what they compute."""

    def carry_out(self, block: ReadyBlock, frame: Frame) -> None: ...


@dataclass
class Frame:
    """A function's values for the programs of a batch. `active` is true for the programs that run here; None: all."""

    batch: Batch
    values: list[Any]
    active: np.ndarray | None = None
    count: int = 1  # of programs, or of lanes where a region is evaluated lane by lane
    tracer: BlockTracer | None = None  # of the program that runs alone, if it is traced

    def branch(self, active: np.ndarray | None) -> Frame:
        """Returns a frame with the same values for some of the programs."""
        return Frame(self.batch, self.values, active, self.count, self.tracer)

    def everyone(self) -> np.ndarray:
        return np.ones(self.count, bool) if self.active is None else self.active


@dataclass(slots=True)
class ReadyOperation:
    """An operation made ready. `run` gets the operands, and the frame before them if the step is `stateful`."""

    run: Callable
    operands: tuple[int, ...]
    results: tuple[int, ...]
    stateful: bool
    operation: Operation


@dataclass
class ReadyBlock:
    arguments: tuple[int, ...]
    steps: list[ReadyOperation]
    last: Operation  # the terminator
    lanes: int  # elements that its operations yield for one program
    place: SourcePlace  # of its first operation: where time was spent
    block: Block
    has_run: bool = False  # in the current call

    @cached_property
    def lines(self) -> frozenset[int]:
        """The lines of the file that its operations stand for.

        Constants are left out: they may be kept far from their line.
        """
        operations = (step.operation for step in self.steps if step.operation.name != "arith.constant")
        return frozenset(operation.place.line for operation in operations) - {0}

    def run(self, frame: Frame) -> list[Any]:
        """Carries out all operations but the terminator. Returns the terminator's operands."""
        self.has_run = True
        frame.batch.spend(len(self.steps), self.lanes * frame.count, self.place)
        values = frame.values
        if frame.tracer is not None:
            frame.tracer.carry_out(self, frame)
            return [values[number] for number in self.last.operands]
        for step in self.steps:
            operands = [values[number] for number in step.operands]
            out = step.run(frame, *operands) if step.stateful else step.run(*operands)
            results = step.results
            if len(results) == 1:
                values[results[0]] = out
            elif results:
                for number, value in zip(results, out):
                    values[number] = value
        return [values[number] for number in self.last.operands]
