"""Counts the iterations in which a program touches no memory, in loops that load or store: a loop that runs too far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from grader.interpreter.registry import ENTRIES
from grader.ttir.module import Operation
from grader.wire.messages import LoopCount


def touches_memory(loop: Operation) -> bool:
    """Returns whether loads, stores or atomics stand in this loop; in loops inside of it, too."""
    return any(one.name in ENTRIES and ENTRIES[one.name].access for one in loop.walk())


@dataclass
class IdleIterations:
    """The counts of each loop, for all programs of all launches."""

    by_loop: dict[Operation, LoopCount] = field(default_factory=dict)

    def note_run(self, loop: Operation, programs: int) -> None:
        """Notes that this many programs begin the loop."""
        self.by_loop.setdefault(loop, LoopCount(loop.place.line)).runs += programs

    def note(self, loop: Operation, idle: np.ndarray) -> None:
        """Notes an iteration. `idle`: of each program that takes part, whether it has loaded and stored nothing."""
        count = self.by_loop[loop]
        count.iterations += idle.size
        count.idle += int(np.count_nonzero(idle))
