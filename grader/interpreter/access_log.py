"""Every access of a small call, lane by lane, for a learner who wants to see what each program does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from grader.interpreter.buffers import Buffer
from grader.interpreter.findings import Turn
from grader.wire.messages import LoggedAccess

MOST_ACCESSES = MOST_LANES = 256
MOST_NOTED = 1 << 13  # accesses of all programs; the first MOST_ACCESSES are reported
MASKED = -1
NO_OFFSET = -(1 << 62)  # of a lane that is masked off

Lanes = tuple[np.ndarray | None, tuple[int, ...]]  # which lanes of the programs' tensors are active (None: all), shape


@dataclass
class _Noted:
    turn: Turn
    access: LoggedAccess
    buffer: Buffer
    offsets: np.ndarray  # int64, by lane


class AccessObserver(Protocol):
    """Takes down the accesses of a memory, one after another."""

    def note(self, turn: Turn, access: LoggedAccess, buffer: Buffer, offsets: np.ndarray) -> None: ...


@dataclass
class AccessLog:
    """The accesses noted so far. Offsets become elements at the end, when names and shapes of results are known."""

    _noted: list[_Noted] = field(default_factory=list)
    _by_program: Counter = field(default_factory=Counter)

    def note(self, turn: Turn, access: LoggedAccess, buffer: Buffer, offsets: np.ndarray) -> None:
        """Notes an access, without its argument and elements yet. `offsets`: by lane, NO_OFFSET where masked off.

        If an access has more than MOST_LANES lanes, masked lanes are left out: a small tensor shows in a large tile
        too.
        """
        program = access.launch, *access.program
        if len(self._noted) < MOST_NOTED and self._by_program[program] < MOST_ACCESSES:
            self._by_program[program] += 1
            shown = offsets if offsets.size <= MOST_LANES else offsets[offsets != NO_OFFSET]
            self._noted.append(_Noted(turn, access, buffer, shown[:MOST_LANES].copy()))

    def accesses(self) -> list[LoggedAccess]:
        """Returns the accesses launch by launch and program by program, as if programs ran one after another."""
        first = sorted(self._noted, key=lambda noted: noted.turn)[:MOST_ACCESSES]
        for noted in first:
            noted.access.argument = noted.buffer.label
            noted.access.elements = [_number(noted.buffer, offset) for offset in noted.offsets.tolist()]
        return [noted.access for noted in first]


def _number(buffer: Buffer, offset: int) -> int:
    """Returns an element's number in the argument, counted row by row; MASKED for a lane without an element."""
    index = [] if offset == NO_OFFSET else buffer.view.element(offset)
    return int(np.ravel_multi_index(index, buffer.view.shape)) if index else MASKED
