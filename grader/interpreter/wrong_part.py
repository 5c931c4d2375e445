"""The part of a wrong call with which each try of an edit begins: what leaves it wrong leaves the call wrong.

Most edits mend nothing, and a program or two of one launch tell so for a small part of what the whole call takes. Two
values that are equal whenever the part computes them are one value there: an edit that exchanges them does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grader.interpreter.frame import Frame, ReadyBlock
from grader.ttir.editable import Change
from grader.ttir.edits import Edit
from grader.ttir.module import Block, Module

NAME = re.compile(r"%[\w$.\-]+(?:#\d+)?")
MOST_PROGRAMS = 3  # wrong ones, of which the one that takes least is chosen
Program = tuple[int, int, int]


@dataclass(frozen=True)
class WrongPart:
    """Some programs of a launch, and the launches before it that they need. `launch`: its number, from 0. `programs`:
    their indices in its grid. `launches`: the numbers of all that are carried out."""

    launch: int
    programs: tuple[Program, ...]
    launches: frozenset[int]

    def numbers(self, grid: Sequence[int]) -> list[int]:
        """Returns the numbers that its programs have in a grid, the first axis counting fastest, as far as it has
        them."""
        x, y, _ = grid
        there = [one for one in self.programs if all(at < size for at, size in zip(one, grid))]
        return [a + x * (b + y * c) for a, b, c in there]

    def wrote(self, writers: np.ndarray, grid: Sequence[int]) -> np.ndarray:
        """Returns of each number of a map of writers, in which the last axis counts fastest, whether it is one of its
        programs."""
        _, y, z = grid
        return np.isin(writers, [(a * y + b) * z + c for a, b, c in self.programs])


def some_of(writers: np.ndarray, grid: tuple[int, int, int]) -> list[Program]:
    """Returns a few of the programs in a map of writers: the first, the last, and some between."""
    different = np.unique(writers[writers >= 0])
    chosen = np.linspace(0, different.size - 1, min(MOST_PROGRAMS, different.size)).astype(int)
    return list(zip(*(axis.tolist() for axis in np.unravel_index(different[chosen], grid))))


class ComputedValues:
    """Notes what a kernel computes while it runs, so that values that are always equal are known.

    It carries out blocks as a BlockTracer does.
    """

    def __init__(self, module: Module) -> None:
        self._homes: dict[int, str] = {}  # of each block and operation, by its id: the name of its function
        for name, function in module.functions.items():
            self._note_homes(name, function.blocks)
        self._first: dict[tuple[str, int], int] = {}  # what a value was when it was computed first
        self._all: dict[tuple[str, int], tuple[int, int]] = {}  # its block, and all that it was, in order
        self._changing: set[tuple[str, int]] = set()

    def _note_homes(self, name: str, blocks: Sequence[Block]) -> None:
        for block in blocks:
            self._homes[id(block)] = name
            for operation in block.operations:
                self._homes[id(operation)] = name
                for region in operation.regions:
                    self._note_homes(name, region)

    def carry_out(self, block: ReadyBlock, frame: Frame) -> None:
        values, home = frame.values, self._homes[id(block.block)]
        for number in block.arguments:
            self._note((home, number), values[number], block)
        for step in block.steps:
            operands = [values[number] for number in step.operands]
            out = step.run(frame, *operands) if step.stateful else step.run(*operands)
            for number, value in zip(step.results, [out] if len(step.results) == 1 else out or ()):
                values[number] = value
                self._note((home, number), value, block)

    def _note(self, value: tuple[str, int], held: object, block: ReadyBlock) -> None:
        if isinstance(held, np.ndarray):
            shape = held.shape[1:] if held.shape[:1] == (1,) else held.shape
            now = hash((held.tobytes(), held.dtype.str, shape))
        else:
            now = hash(value)  # a descriptor is like no other value
        if self._first.setdefault(value, now) != now:
            self._changing.add(value)
        self._all[value] = id(block), hash((self._all.get(value), now))

    def _same(self, value: tuple[str, int]) -> object:
        """Returns what is equal for values that are always equal."""
        return self._all[value] if value in self._changing else self._first.get(value, value)

    def done_by(self, edit: Edit) -> tuple | None:
        """Returns what is equal for edits that do the same; None for one that does nothing."""
        done = [self._done_by(change) for change in edit.changes]
        return tuple(after for _, after in done) if any(before != after for before, after in done) else None

    def _done_by(self, change: Change) -> tuple[tuple, tuple]:
        """Returns what stands for the operation's line before and after a change."""
        site, home = change.site, self._homes[id(change.site.operation)]
        same = {one.name: str(hash(self._same((home, one.number)))) for one in site.known}
        if change.renamed:
            result = self._same((home, site.operation.results[0]))
            return (site.id, str(hash(result))), (site.id, same.get(change.renamed, change.renamed))

        def told(line: str) -> str:
            made, quote, rest = line.partition('"')  # what is left of the first quote are names of results
            return made + quote + NAME.sub(lambda name: same.get(name[0], name[0]), rest)

        return (site.id, told(site.line)), (site.id, *map(told, change.lines))
