"""Tables in which any two values of two axes meet in some row, as far as the number of rows permits.

D. Cohen, S. Dalal, M. Fredman, G. Patton, The AETG System: An Approach to Testing Based on Combinatorial Design, IEEE
Transactions on Software Engineering 23 (1997): rows are made one after the other, each the best of a few candidates,
and a candidate takes axis after axis the value that meets the most others for the first time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

CANDIDATES = 4  # rows of which the best is taken
NEVER_MET = 20  # worth of a cell that has been in no row, besides the worth of its open pairs

Axis = tuple[str, str]  # (what, of which size or argument)
Value = Any  # hashable; which type it has depends on the axis
Cell = tuple[Axis, Value]  # a value on its axis
Row = dict[Axis, Value]


class Covering:
    """The pairs of cells that have not met yet. `weight`: how much it matters that two cells meet, 0 for not at all."""

    def __init__(
        self, axes: Mapping[Axis, Sequence[Value]], weight: Callable[[Cell, Cell], int], numbers: random.Random
    ):
        self.axes, self.numbers = axes, numbers
        self._open: dict[Cell, dict[Cell, int]] = {(axis, value): {} for axis in axes for value in axes[axis]}
        for one, other in combinations(axes, 2):
            for cell, met in product(_cells_on(axes, one), _cells_on(axes, other)):
                if worth := weight(cell, met):
                    self._open[cell][met] = self._open[met][cell] = worth
        self._unseen = set(self._open)

    @property
    def open_pairs(self) -> int:
        """The number of pairs that have met in no row yet."""
        return sum(map(len, self._open.values())) // 2

    def complete(self, started: Mapping[Axis, Value | None]) -> Row:
        """Returns a full row: the values of `started`, and on all other axes the best that a few candidates had. Its
        pairs then count as met. None in `started`: the axis has no value in this row, and nothing is met there."""
        candidates = [self._filled(started) for _ in range(CANDIDATES)]
        best = max(candidates, key=self._weight_of)
        self._unseen.difference_update(_cells(best))
        for cell, met in combinations(_cells(best), 2):
            self._open[cell].pop(met, None)
            self._open[met].pop(cell, None)
        return best

    def _filled(self, started: Mapping[Axis, Value | None]) -> Row:
        row = dict(started)
        if not _cells(row):
            axis, value = self._least_met(row)
            row[axis] = value
        free = [axis for axis in self.axes if axis not in row]
        self.numbers.shuffle(free)
        for axis in free:
            row[axis] = self._best_on(axis, _cells(row))
        return row

    def _least_met(self, row: Row) -> Cell:
        """Returns the cell whose open pairs weigh the most, among the cells on axes that the row leaves open."""
        cells = [cell for cell in self._open if cell[0] not in row]
        self.numbers.shuffle(cells)
        return max(cells, key=lambda cell: sum(self._open[cell].values()))

    def _best_on(self, axis: Axis, cells: Sequence[Cell]) -> Value:
        """Returns the value of an axis that meets the most of these cells for the first time, by weight."""
        values = list(self.axes[axis])
        self.numbers.shuffle(values)

        def gain(value: Value) -> tuple[int, int]:
            opened, first = self._open[axis, value], NEVER_MET if (axis, value) in self._unseen else 0
            return first + sum(opened.get(cell, 0) for cell in cells), len(opened)

        return max(values, key=gain)

    def _weight_of(self, row: Row) -> int:
        cells = _cells(row)
        worth = sum(self._open[cell].get(met, 0) for cell, met in combinations(cells, 2))
        return worth + NEVER_MET * sum(cell in self._unseen for cell in cells)


def _cells_on(axes: Mapping[Axis, Sequence[Value]], axis: Axis) -> list[Cell]:
    return [(axis, value) for value in axes[axis]]


def _cells(row: Mapping[Axis, Value | None]) -> list[Cell]:
    return [(axis, value) for axis, value in row.items() if value is not None]
