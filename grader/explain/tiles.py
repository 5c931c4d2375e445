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
    if tiles is None or min(tiles.shape) < 2:
        return []
    written = int((writers.programs.unique() >= 0).sum())
    if tiles.shape[0] * tiles.shape[1] < written or not _one_program_each(tiles, writers, written):
        return []
    programs = as_matrix(writers.programs)
    wrong = as_matrix(wrong)
    unwritten = (programs == -1) | ((programs < 0) & wrong)  # a given output is initialised, with poison
    lines = []
    for top, bottom in zip(tiles.rows, tiles.rows[1:]):
        marks = ""
        for left, right in zip(tiles.columns, tiles.columns[1:]):
            part = slice(top, bottom), slice(left, right)
            marks += UNWRITTEN if unwritten[part].any() else WRONG if wrong[part].any() else RIGHT
        lines.append(marks)
    if set("".join(lines)) == {WRONG}:
        return []
    return _shortened(lines)


def _one_program_each(tiles: Tiles, writers: Writers, written: int) -> bool:
    """Whether the cuts are the programs' own tiles: as many written tiles as programs."""
    who = as_matrix(writers.programs)
    corners = [int(who[top, left]) for top in tiles.rows[:-1] for left in tiles.columns[:-1]]
    owners = [owner for owner in corners if owner >= 0]
    return len(owners) == len(set(owners)) == written


def _shortened(lines: list[str]) -> list[str]:
    """At most MOST_ROWS lines of MOST_COLUMNS characters; what is left out is said."""
    shown = [f"{line[:MOST_COLUMNS]} ..." if len(line) > MOST_COLUMNS else line for line in lines]
    if len(shown) <= MOST_ROWS:
        return shown
    return [*shown[: MOST_ROWS - 1], f"... {len(shown) - MOST_ROWS + 1} more rows of tiles"]
