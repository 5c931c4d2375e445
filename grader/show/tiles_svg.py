"""The map of what programs wrote of a result, and which parts are right. Each part can be hovered or focused."""

from __future__ import annotations

from html import escape
from itertools import accumulate

from grader.explain.tile_map import RIGHT, UNWRITTEN, WRONG, MapTile, TileMap

WIDEST, TALLEST = 640, 420  # of the map itself, in pixels
LEAST_SIDE = 14  # of a tile, so that a tile of a single column can be seen and hit
GAP, MARGIN = 2, 1
ROOM_FOR_A_LETTER = 8.5

STYLE = """\
.tilemap { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; color-scheme: light dark; }
.tilemap rect { fill: #d3ebcb; stroke: #3b7a2c; }
.tilemap .wrong rect { fill: #f7c6c0; stroke: #a8281a; }
.tilemap .unwritten rect { fill: none; stroke: #6b7280; stroke-dasharray: 3 2; }
.tilemap path { stroke: #a8281a; stroke-width: 2; }
.tilemap text { fill: #1d2330; text-anchor: middle; dominant-baseline: central; pointer-events: none; }
.tilemap .tile { cursor: pointer; outline: none; }
.tilemap .tile:focus rect, .tilemap .tile:hover rect, .tilemap .chosen rect { stroke-width: 3; stroke: #1d4ed8; }
@media (prefers-color-scheme: dark) {
  .tilemap rect { fill: #1f3d1a; stroke: #7fbf6d; }
  .tilemap .wrong rect { fill: #541c16; stroke: #f08a7e; }
  .tilemap .unwritten rect { stroke: #9ca3af; }
  .tilemap path { stroke: #f08a7e; }
  .tilemap text { fill: #e8eaee; }
  .tilemap .tile:focus rect, .tilemap .tile:hover rect, .tilemap .chosen rect { stroke: #93b4ff; }
}
"""


def tile_map_svg(tiles: TileMap) -> str:
    """Returns an <svg> element for a file or for a page; each tile is a focusable <g class="tile"> that describes
    itself."""
    widths = _sides(tiles.columns, WIDEST)
    as_wide = WIDEST * tiles.rows[-1] / max(1, tiles.columns[-1])  # with square elements
    heights = _sides(tiles.rows, min(TALLEST, max(LEAST_SIDE * 2, as_wide)))
    lefts, tops = _starts(widths), _starts(heights)
    parts = [
        _tile_svg(tiles, row, column, (lefts[column], tops[row], widths[column], heights[row]))
        for row in range(len(heights))
        for column in range(len(widths))
    ]
    width, height = lefts[-1] + widths[-1] + MARGIN, tops[-1] + heights[-1] + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tilemap" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="group" aria-label="{escape(summary(tiles))}">'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>"
    )


def summary(tiles: TileMap) -> str:
    """Returns the map in a sentence: "Map of z, 12 x 781: 12 parts, 9 right, 3 wrong, 0 not written." """
    states = [tile.state for line in tiles.tiles for tile in line]
    size = " x ".join(map(str, tiles.shape))
    counts = ", ".join(f"{states.count(state)} {words}" for state, words in
                       ((RIGHT, "right"), (WRONG, "wrong"), (UNWRITTEN, "not written")))  # fmt: skip
    return f"Map of {tiles.name}, {size}: {len(states)} part{'' if len(states) == 1 else 's'}, {counts}."


def _tile_svg(tiles: TileMap, row: int, column: int, box: tuple[float, float, float, float]) -> str:
    tile, (x, y, width, height) = tiles.tiles[row][column], box
    title = description(tiles, row, column)
    element = f"{tiles.name}[{', '.join(map(str, tile.element))}]"
    data = {"element": element, "yours": tile.yours, "expected": tile.expected, "row": row, "column": column}
    attributes = " ".join(f'data-{name}="{escape(str(value))}"' for name, value in data.items())
    cross = _cross(x + LEAST_SIDE / 2, y + LEAST_SIDE / 2) if tile.state == WRONG else ""
    label = _label(tile, width, height)
    text = f'<text x="{x + width / 2:.1f}" y="{y + height / 2:.1f}">{label}</text>' if label else ""
    return (
        f'<g class="tile {tile.state}" tabindex="0" role="img" aria-label="{escape(title)}" {attributes}>'
        f"<title>{escape(title)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>{cross}{text}</g>'
    )


def description(tiles: TileMap, row: int, column: int) -> str:
    """Returns a tile in words: "Program (0, 1), z[0:32, 64:128]: 12 elements wrong. The first is ..." """
    tile, elements = tiles.tiles[row][column], tiles.elements(row, column)
    who = "No program" if tile.program is None else f"Program {tuple(tile.program)}"
    if tile.state == UNWRITTEN:
        return f"{elements}: not written by any program."
    if tile.state == RIGHT:
        return f"{who}, {elements}: right."
    plural = "" if tile.wrong == 1 else "s"
    first = f"{tiles.name}[{', '.join(map(str, tile.element))}]"
    return (
        f"{who}, {elements}: {tile.wrong} element{plural} wrong. "
        f"The first is {first}: yours {tile.yours}, expected {tile.expected}."
    )


def _label(tile: MapTile, width: float, height: float) -> str:
    """Returns the program's number, or "?" for an unwritten tile; "" where there is no room for it."""
    text = "?" if tile.state == UNWRITTEN else "" if tile.program is None else ",".join(map(str, tile.program))
    taken = 2 * LEAST_SIDE if tile.state == WRONG else 0  # by the cross, and as much on the other side
    return text if len(text) * ROOM_FOR_A_LETTER + taken <= width and height >= LEAST_SIDE else ""


def _cross(x: float, y: float) -> str:
    """Returns a mark for a tile's corner, around (x, y): not only a colour says that a tile is wrong."""
    return f'<path d="M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0 -7l-7 7"/>'


def _sides(cuts: tuple[int, ...], total: float) -> list[float]:
    """Returns the tiles' sides in pixels: they grow with the tiles' elements, and none is too small to hit."""
    count = len(cuts) - 1
    spare = max(0.0, total - count * (LEAST_SIDE + GAP))
    return [LEAST_SIDE + spare * (end - start) / max(1, cuts[-1]) for start, end in zip(cuts, cuts[1:])]


def _starts(sides: list[float]) -> list[float]:
    return [MARGIN + at + GAP * number for number, at in enumerate(accumulate([0.0, *sides[:-1]]))]
