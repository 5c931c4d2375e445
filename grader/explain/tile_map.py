"""Defines the map of a result's tiles: which program wrote each, and whether it is right. Imports no torch.

A tile is a rectangle of elements that one program wrote; cuts lie where the writing program changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod

RIGHT, WRONG, UNWRITTEN = "right", "wrong", "unwritten"
MARKS = {RIGHT: ".", WRONG: "X", UNWRITTEN: "?"}
MOST_ROWS, MOST_COLUMNS = 12, 48  # tiles of a map in the terminal


@dataclass(frozen=True)
class MapTile:
    """A tile with its state. element: the index of its first wrong element, or of its first if all are right."""

    state: str
    program: tuple[int, ...] | None  # None: no program wrote it
    wrong: int  # number of wrong elements
    element: tuple[int, ...]
    yours: str
    expected: str


@dataclass(frozen=True)
class TileMap:
    """A map of tiles: tiles[i][j] has the rows rows[i]:rows[i + 1] and the columns columns[j]:columns[j + 1].

    A vector is a matrix with a single row; the rows of [B, M, N] are counted through, so that there are B * M.
    """

    name: str  # of the result
    shape: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    tiles: tuple[tuple[MapTile, ...], ...]

    @property
    def count(self) -> int:
        return (len(self.rows) - 1) * (len(self.columns) - 1)

    def elements(self, row: int, column: int) -> str:
        """Returns the elements of a tile as a slice of the result: "z[0:32, 64:128]", or "z[1, 0:32, 64:128]".

        Rows that are no slice, such as the last rows of a batch and the first of the next, are counted through:
        "z.flatten(0, -2)[30:70, 64:128]".
        """
        across = f"{self.columns[column]}:{self.columns[column + 1]}"
        if len(self.shape) < 2:
            return f"{self.name}[{across}]"
        first, end = self.rows[row], self.rows[row + 1]
        if rows := _slices(first, end, self.shape[:-1]):
            return f"{self.name}[{rows}, {across}]"
        return f"{self.name}.flatten(0, -2)[{first}:{end}, {across}]"

    def text(self) -> list[str]:
        """Returns the map as lines with a character of MARKS for each tile.

        Returns [] for fewer than two rows or columns of tiles, for a program with several, and if all are wrong.
        """
        states = {tile.state for line in self.tiles for tile in line}
        owners = [tile.program for line in self.tiles for tile in line if tile.program is not None]
        if min(len(self.rows), len(self.columns)) < 3 or len(owners) != len(set(owners)) or states == {WRONG}:
            return []
        return _shortened(["".join(MARKS[tile.state] for tile in line) for line in self.tiles])

    def to_json(self) -> dict:
        return asdict(self)

    @staticmethod
    def from_json(data: dict) -> TileMap:
        """Returns the map that to_json wrote; raises KeyError, TypeError or ValueError for other data."""
        tiles = tuple(tuple(_tile(tile) for tile in line) for line in data["tiles"])
        rows, columns, shape = (tuple(map(int, data[key])) for key in ("rows", "columns", "shape"))
        if len(tiles) != len(rows) - 1 or any(len(line) != len(columns) - 1 for line in tiles):
            raise ValueError("the tiles do not fit the cuts")
        return TileMap(str(data["name"]), shape, rows, columns, tiles)


def index_of(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the index of element `number` of a tensor of this shape, counted row by row; () for the shape ()."""
    index: list[int] = []
    for size in reversed(shape):
        number, place = divmod(number, size)
        index.insert(0, place)
    return tuple(index)


def _slices(first: int, end: int, shape: Sequence[int]) -> str:
    """Returns the rows first:end, counted through these dimensions, as indices: "1, 0:32"; "" if they are no slice."""
    for dim in reversed(range(len(shape))):
        inner = prod(shape[dim + 1 :])
        if first % inner or end % inner:
            break
        *outer, start = index_of(first // inner, shape[: dim + 1])
        *others, last = index_of(end // inner - 1, shape[: dim + 1])
        if outer == others:
            whole = [f"0:{size}" for size in shape[dim + 1 :]]
            return ", ".join([*map(str, outer), f"{start}:{last + 1}", *whole])
    return ""


def _tile(data: dict) -> MapTile:
    if data["state"] not in MARKS:
        raise ValueError("a tile in an unknown state")
    program = None if data["program"] is None else tuple(map(int, data["program"]))
    element = tuple(map(int, data["element"]))
    return MapTile(data["state"], program, int(data["wrong"]), element, str(data["yours"]), str(data["expected"]))


def _shortened(lines: list[str]) -> list[str]:
    """Returns at most MOST_ROWS lines of MOST_COLUMNS tiles; dots, or a count, stand for tiles that are left out."""
    shown = [f"{line[:MOST_COLUMNS]} ..." if len(line) > MOST_COLUMNS else line for line in lines]
    if len(shown) <= MOST_ROWS:
        return shown
    return [*shown[: MOST_ROWS - 1], f"... {len(shown) - MOST_ROWS + 1} more rows of tiles"]
