"""Which part of the output each program wrote, and a small map of which parts are right."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grader.reply import Writers

MOST_ROWS, MOST_COLUMNS = 12, 48
RIGHT, WRONG, UNWRITTEN = ".", "X", "?"


@dataclass
class Tiles:
    """A 2-D output cut where the writing program changes: rows[i]:rows[i+1] by columns[j]:columns[j+1]."""

    rows: list[int]
    columns: list[int]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows) - 1, len(self.columns) - 1


def program_index(number: int, grid: list[int], axes: int) -> tuple[int, ...]:
    """A linear program number as the index of a program in a grid that was given with so many axes."""
    x, y, z = (list(grid) + [1, 1, 1])[:3]
    index = (number // (y * z), number // z % y, number % z)
    return index[:axes]


def as_matrix(tensor: torch.Tensor) -> torch.Tensor:
    """[..., N] as [M, N]; a vector is one row."""
    return tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() else tensor.reshape(1, 1)


def tiles_of(writers: Writers) -> Tiles | None:
    """None when the programs wrote no rectangles of a grid, or too many to show."""
    who = as_matrix(writers.programs)
    if not who.numel():
        return None
    rows = _cuts((who[1:] != who[:-1]).any(dim=1))
    columns = _cuts((who[:, 1:] != who[:, :-1]).any(dim=0))
    tiles = Tiles([0, *rows, who.shape[0]], [0, *columns, who.shape[1]])
    many = tiles.shape[0] > 256 or tiles.shape[1] > 256
    return None if many else tiles


def _cuts(changes: torch.Tensor) -> list[int]:
    return [int(i) + 1 for i in changes.nonzero().flatten()]


def tile_map(wrong: torch.Tensor, writers: Writers | None) -> list[str]:
    """One character per tile: right, wrong or unwritten. Empty when a map would say nothing."""
    tiles = tiles_of(writers) if writers is not None else None
    if tiles is None or tiles.shape == (1, 1):
        return []
    wrong, unwritten = as_matrix(wrong), as_matrix(writers.programs) == -1
    lines = []
    for top, bottom in zip(tiles.rows, tiles.rows[1:]):
        marks = ""
        for left, right in zip(tiles.columns, tiles.columns[1:]):
            part = slice(top, bottom), slice(left, right)
            marks += UNWRITTEN if unwritten[part].any() else WRONG if wrong[part].any() else RIGHT
        lines.append(marks)
    if len(lines[0]) < 2 or set("".join(lines)) == {WRONG}:
        return []
    return _shortened(lines)


def _shortened(lines: list[str]) -> list[str]:
    """At most MOST_ROWS lines of MOST_COLUMNS characters; what is left out is said."""
    shown = [f"{line[:MOST_COLUMNS]} ..." if len(line) > MOST_COLUMNS else line for line in lines]
    if len(shown) <= MOST_ROWS:
        return shown
    return [*shown[: MOST_ROWS - 1], f"... {len(shown) - MOST_ROWS + 1} more rows of tiles"]
