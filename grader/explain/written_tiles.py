"""Cuts a result into the tiles that programs wrote, and finds which of them are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from grader.explain.evidence import Compared, number_text
from grader.explain.tile_map import RIGHT, UNWRITTEN, WRONG, MapTile, TileMap, index_of
from grader.wire.reply import Writers

MOST_TILES = 1024  # of a map


@dataclass
class TileCuts:
    """The cuts of a matrix between tiles, where the writing program changes.

    A tile has the rows rows[i]:rows[i + 1] and the columns columns[j]:columns[j + 1].
    """

    rows: list[int]
    columns: list[int]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows) - 1, len(self.columns) - 1

    @property
    def parts(self) -> list[tuple[slice, slice]]:
        return [(slice(*rows), slice(*columns)) for rows in pairwise(self.rows) for columns in pairwise(self.columns)]


def program_index(number: int, grid: list[int], axes: int) -> tuple[int, ...]:
    """Returns the index of the program with this number, the last axis counting fastest. axes: axes of the launch."""
    x, y, z = (list(grid) + [1, 1, 1])[:3]
    index = (number // (y * z), number // z % y, number % z)
    return index[:axes]


def as_matrix(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor [..., N] as a matrix [M, N], with one row for a vector; a number as [1, 1]."""
    return tensor.reshape(math.prod(tensor.shape[:-1]), tensor.shape[-1]) if tensor.dim() else tensor.reshape(1, 1)


def tiles_of(writers: Writers) -> TileCuts | None:
    """Returns the tiles of a result; None if it is empty, or has more than 256 tiles along an axis."""
    who = as_matrix(writers.programs)
    if not who.numel():
        return None
    rows = _cuts((who[1:] != who[:-1]).any(dim=1))
    columns = _cuts((who[:, 1:] != who[:, :-1]).any(dim=0))
    tiles = TileCuts([0, *rows, who.shape[0]], [0, *columns, who.shape[1]])
    many = tiles.shape[0] > 256 or tiles.shape[1] > 256
    return None if many else tiles


def _cuts(changes: torch.Tensor) -> list[int]:
    return [int(i) + 1 for i in changes.nonzero().flatten()]


def begins_a_tile(index: Sequence[int], constants: dict[str, int]) -> bool:
    """Returns whether an element may be the first of a tile: along each axis, its index is a multiple of a block."""
    return all(place == 0 or any(place % size == 0 for size in _blocks(constants)) for place in index)


def _blocks(constants: dict[str, int]) -> list[int]:
    return [size for name, size in constants.items() if name.startswith("BLOCK") and size > 0]


def _whole(cuts: list[int], blocks: list[int], who: torch.Tensor) -> list[int]:
    """Returns the cuts between whole tiles, where the first has a block's size and others end early only before
    elements that nobody wrote; else the cuts as they are. who: programs by element, [M, N], cut along M."""
    size = cuts[1]
    sides = [(who[cut - 1], who[cut]) for cut in cuts[1:-1] if cut % size]
    if size not in blocks or any(bool(((one >= 0) & (two >= 0) & (one != two)).any()) for one, two in sides):
        return cuts
    return [*range(0, cuts[-1], size), cuts[-1]]


def tile_map(evidence: Compared) -> TileMap | None:
    """Returns the map of the result's tiles; None if the writers are not known, or there are more than MOST_TILES."""
    writers = evidence.writers
    tiles = tiles_of(writers) if writers is not None else None
    if writers is None or tiles is None or tiles.shape[0] * tiles.shape[1] > MOST_TILES:
        return None
    who, blocks = as_matrix(writers.programs), _blocks(evidence.constants)
    tiles = TileCuts(_whole(tiles.rows, blocks, who), _whole(tiles.columns, blocks, who.t()))
    if tiles.shape[0] * tiles.shape[1] > MOST_TILES:
        return None
    columns = list(pairwise(tiles.columns))
    lines = tuple(tuple(_tile(evidence, writers, rows, one) for one in columns) for rows in pairwise(tiles.rows))
    return TileMap(evidence.returns, tuple(writers.programs.shape), tuple(tiles.rows), tuple(tiles.columns), lines)


def _tile(evidence: Compared, writers: Writers, rows: tuple[int, int], columns: tuple[int, int]) -> MapTile:
    comparison, launch = evidence.comparison, evidence.launch
    part = slice(*rows), slice(*columns)
    wrong, owner = as_matrix(comparison.wrong)[part], int(as_matrix(writers.programs)[rows[0], columns[0]])
    count = int(wrong.count_nonzero())
    # An output that is an argument is initialised, with poison: only wrong values tell that no program wrote it.
    state = UNWRITTEN if owner == -1 or (owner < 0 and count) else WRONG if count else RIGHT
    row, column = divmod(int(wrong.flatten().to(torch.uint8).argmax()), wrong.shape[1]) if count else (0, 0)
    row, column = rows[0] + row, columns[0] + column
    yours, expected = (number_text(as_matrix(t)[row, column]) for t in (comparison.out, comparison.expected))
    axes = len(launch.grid) if launch else 1
    return MapTile(
        state=state,
        program=program_index(owner, writers.grid, axes) if owner >= 0 else None,
        wrong=count,
        element=(*index_of(row, comparison.wrong.shape[:-1]), column),
        yours=yours,
        expected=expected,
    )
