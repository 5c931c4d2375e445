"""The programs that run side by side: what they share, what they have spent, and what was seen of them."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from grader.interpreter.lost_offsets import Lost
from grader.ttir.module import Place

if TYPE_CHECKING:
    from grader.interpreter.memory import Memory
    from grader.interpreter.watcher import Watcher

MOST_STEPS = 3_000_000  # operations carried out in one launch, each for a batch
MOST_LANES = 1 << 35  # elements that these yield, all together
MOST_DEPTH = 32  # calls inside of calls


class TooLong(Exception):
    """The launch takes more work than a kernel of this course may, or more time than its call has; `place` is where it
    was when that ran out."""

    def __init__(self, place: Place, what: str) -> None:
        super().__init__(what)
        self.place = place


class KernelFault(Exception):
    """A program did what its own text forbids: an assertion that does not hold."""

    def __init__(self, message: str, place: Place, program: int) -> None:
        super().__init__(message)
        self.place, self.program = place, program


@dataclass
class Broken:
    """A promise to the compiler that does not hold."""

    what: str
    place: Place
    program: int


@dataclass
class Overflow:
    """A number that its type, `dtype`, does not hold: it wrapped around, or was rounded, and an access went by it."""

    dtype: str
    place: Place
    program: int


@dataclass
class Batch:
    """What the running programs share; `programs` are their numbers in the grid, the first axis counting fastest."""

    memory: Memory
    grid: tuple[int, int, int]
    waits: bool = False  # programs may wait for each other: they take turns
    fill: str = "poison"  # what masked lanes of loads without `other` hold: "poison", "zero" or "lowest"
    fill_lines: list[int] | None = None  # of such loads: those of other lines hold "poison"; None: of all
    believes: bool = False  # in tl.max_contiguous, as a compiled kernel does
    until: float = math.inf  # seconds of a core that this process may have used by then
    programs: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int32))
    steps: int = 0
    lanes: int = 0
    most_lanes: int = MOST_LANES
    most_steps: int = MOST_STEPS
    done: int = 0  # programs of the launch that have come to their end
    depth: int = 0
    atomics: bool = False
    float_sums: bool = False  # atomics that add floats
    asked: int = 0  # atomics that the running programs have done
    unmasked_fills: list[int] = field(default_factory=list)  # lines of masked loads without `other`
    broken: list[Broken] = field(default_factory=list)
    lost: Lost = field(default_factory=Lost)
    overflows: list[Overflow] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    watcher: Watcher | None = None  # of the one program that runs, if it is watched

    def fill_of(self, line: int) -> str:
        """Returns the name of what masked lanes of a load in this line hold."""
        return self.fill if self.fill_lines is None or line in self.fill_lines else "poison"

    @property
    def count(self) -> int:
        return len(self.programs)

    def program_id(self, axis: int) -> np.ndarray:
        x, y, _ = self.grid
        if axis == 0:
            return self.programs % np.int32(x) if x < 1 << 31 else self.programs
        return self.programs // x % y if axis == 1 else self.programs // (x * y)

    def spend(self, steps: int, lanes: int, place: Place) -> None:
        self.steps += steps
        self.lanes += lanes
        if self.steps > self.most_steps or self.lanes > self.most_lanes:
            raise TooLong(place, "it has done more work than any kernel here needs")
        if time.process_time() > self.until:
            raise TooLong(place, "its time is used up")

    @contextlib.contextmanager
    def deeper(self, place: Place) -> Iterator[None]:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise TooLong(place, "functions call each other without end")
        yield
        self.depth -= 1
