"""The programs that run side by side in a batch: their shared state, the work that they did, and what was observed."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from grader.interpreter.lost_offsets import Lost
from grader.interpreter.memory import CheckedMemory
from grader.interpreter.pipelined_loads import PipelinedLoop
from grader.interpreter.wide_accesses import WideAccesses
from grader.ttir.module import Operation, SourcePlace
from grader.wire.messages import UNALIGNED

MOST_STEPS = 3_000_000  # operations carried out in one launch; an operation counts once for a whole batch
MOST_LANES = 1 << 35  # elements that these operations yield in total
MOST_DEPTH = 32  # nested calls


class TooLong(Exception):
    """The launch exceeds the work that a kernel of this course may do, or the time of its call.

    `place` is the location that the launch had reached by then.
    """

    def __init__(self, place: SourcePlace, what: str) -> None:
        super().__init__(what)
        self.place = place


class KernelFault(Exception):
    """An assertion in the kernel does not hold. `program` is the number of the program in the grid."""

    def __init__(self, message: str, place: SourcePlace, program: int) -> None:
        super().__init__(message)
        self.place, self.program = place, program


@dataclass
class NotedPromise:
    """A promise to the compiler that does not hold, for example tl.assume."""

    what: str
    place: SourcePlace
    program: int


@dataclass
class NotedOverflow:
    """A value on the way to an address or a mask that its type, `dtype`, could not hold, and that an access used.

    It wrapped around, or was rounded.
    """

    dtype: str
    place: SourcePlace
    program: int


@dataclass
class Batch:
    """The state of a launch and of the programs that run now.

    `programs` are their numbers in the grid (int32), the first axis counting fastest.
    """

    memory: CheckedMemory
    grid: tuple[int, int, int]
    waits: bool = False  # programs may wait for each other, so they run one at a time
    fill: str = "poison"  # what masked lanes of loads without `other` hold: "poison", "zero" or "lowest"
    fill_lines: list[int] | None = None  # lines of the loads that `fill` is for; None: all. Others hold "poison"
    pipelined: Mapping[Operation, PipelinedLoop] = field(default_factory=dict)  # loops of the kernel
    believes: bool = False  # takes tl.max_contiguous for true, as a compiled kernel does
    until: float = math.inf  # time.process_time() at which the call's time is used up
    programs: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int32))
    steps: int = 0
    lanes: int = 0
    most_lanes: int = MOST_LANES
    most_steps: int = MOST_STEPS
    done: int = 0  # programs of the launch that have ended
    depth: int = 0
    atomics: bool = False
    float_sums: bool = False  # atomics that add floats
    asked: int = 0  # atomics that the running programs have done
    unmasked_fills: list[int] = field(default_factory=list)  # lines of masked loads without `other`
    broken: list[NotedPromise] = field(default_factory=list)
    lost: Lost = field(default_factory=Lost)
    wide: WideAccesses = field(default_factory=WideAccesses)
    overflows: list[NotedOverflow] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    checks_offsets: bool = True  # whether offsets that their types cannot hold are noted

    def fill_of(self, line: int) -> str:
        """Returns the name of what masked lanes of a load in this line hold."""
        return self.fill if self.fill_lines is None or line in self.fill_lines else "poison"

    @property
    def notes_widths(self) -> bool:
        """Whether wide accesses are of interest: the kernel breaks a promise about them, or is to be believed."""
        return self.believes or any(promise.what == UNALIGNED for promise in self.broken)

    @property
    def count(self) -> int:
        return len(self.programs)

    def program_id(self, axis: int) -> np.ndarray:
        x, y, _ = self.grid
        if axis == 0:
            return self.programs % np.int32(x) if x < 1 << 31 else self.programs
        return self.programs // x % y if axis == 1 else self.programs // (x * y)

    def spend(self, steps: int, lanes: int, place: SourcePlace) -> None:
        self.steps += steps
        self.lanes += lanes
        if self.steps > self.most_steps or self.lanes > self.most_lanes:
            raise TooLong(place, "it has done more work than any kernel here needs")
        if time.process_time() > self.until:
            raise TooLong(place, "its time is used up")

    @contextlib.contextmanager
    def deeper(self, place: SourcePlace) -> Iterator[None]:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise TooLong(place, "functions call each other without end")
        yield
        self.depth -= 1
